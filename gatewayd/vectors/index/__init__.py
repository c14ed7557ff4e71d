"""The local vector index: flat and HNSW indexes, their files, their memory."""
