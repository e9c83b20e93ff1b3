"""Encoders: frozen networks that turn pictures into features."""
