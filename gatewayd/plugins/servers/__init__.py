"""Tool servers: configuration, records, management and access."""
