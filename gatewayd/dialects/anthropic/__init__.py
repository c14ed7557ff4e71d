"""The Anthropic messages protocol as a dialect and as a source."""
