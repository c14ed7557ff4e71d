"""Routes of chat completions, messages, embeddings, legacy completions, responses and tasks."""
