"""Services for pages: models in another process, background jobs, and caches."""
