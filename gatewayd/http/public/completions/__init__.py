"""Completions: chat, messages, embeddings, legacy completions and responses."""
