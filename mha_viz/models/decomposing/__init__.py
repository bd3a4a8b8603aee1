"""The parts of the scores and outputs of heads."""
