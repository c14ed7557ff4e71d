"""The Anthropic messages protocol, for clients (dialect) and for providers (source)."""
