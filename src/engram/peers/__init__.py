"""Other people's systems, to compare with: one file each, and what only they are made of."""
