"""Routes of batches, and of their files."""
