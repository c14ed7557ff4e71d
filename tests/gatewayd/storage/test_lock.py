"""One process at a time, whatever becomes of it."""
