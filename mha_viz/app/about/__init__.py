"""The page *How to read these pictures*."""
