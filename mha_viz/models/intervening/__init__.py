"""Heads switched off or replaced in a pass, and gradients."""
