"""The page on why heads differ and its small trainings; the page of questions that they answer."""
