"""Embedding models and cross-encoders, and the build of the built-in ones."""
