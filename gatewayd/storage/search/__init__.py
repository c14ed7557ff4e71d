"""Passages and the search in them: full text, vectors, and their tables."""
