"""The page *Why heads differ*, with small trainings and further questions."""
