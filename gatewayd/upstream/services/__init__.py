"""Services for documents: embedders, rerankers, extractors."""
