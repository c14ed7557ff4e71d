"""Routes of images, audio, moderations and reranking."""
