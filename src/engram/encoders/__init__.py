"""Frozen networks that turn pictures into feature vectors, as ONNX graphs."""
