"""The page *Why heads differ*: small training experiments and exercises."""
