"""Readers of document formats, one module per format or family."""
