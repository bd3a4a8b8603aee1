"""The page on which heads are switched off."""
