"""The page on why heads differ, with small trainings, and the page of questions that they answer."""
