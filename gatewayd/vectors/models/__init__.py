"""Embedding models and cross-encoders, and how the built-in ones are made."""
