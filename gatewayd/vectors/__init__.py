"""Local embedding models and the local vector index: the only users of onnxruntime, fastembed and hnswlib.

Imported by the assembly alone. The vectors in the database are the truth: everything here can be thrown away.
"""
