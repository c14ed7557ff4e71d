"""Local vector index: flat and HNSW indexes, their checkpoint files and their memory budget."""
