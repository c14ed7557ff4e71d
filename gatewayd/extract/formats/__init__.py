"""Readers of document formats, one module for each family."""
