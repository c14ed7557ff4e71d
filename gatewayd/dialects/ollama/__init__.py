"""The Ollama native protocol as a dialect and as a source."""
