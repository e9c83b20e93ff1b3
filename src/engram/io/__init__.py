"""The model file and what a model is exported to."""
