"""The base addresses under which OpenAI clients look for the same endpoints."""

from typing import Final

BASES: Final = ("/api", "/api/v1", "/v1", "/openai", "/openai/v1", "/ollama/v1")
