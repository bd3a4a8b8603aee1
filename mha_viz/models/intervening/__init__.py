"""Change a forward pass: switch heads off, patch them, follow gradients."""
