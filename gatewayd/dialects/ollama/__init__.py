"""The Ollama native protocol, for clients (dialect) and for runtimes (source)."""
