"""Local embedding models and the local vector index: the only users of onnxruntime, fastembed and hnswlib.

Only the assembly imports it. The database is authoritative: models, indexes and checkpoints can be rebuilt.
"""
