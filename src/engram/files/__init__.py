"""Files: one model is one file, and one graph is one file."""
