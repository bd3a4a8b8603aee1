"""The page on why heads differ: small trainings."""
