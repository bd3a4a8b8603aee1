"""The work that is done for pages: models in another process, jobs, and what is cached."""
