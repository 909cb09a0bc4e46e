"""Files: the model file."""
