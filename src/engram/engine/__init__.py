"""How a training step is taken."""
