"""Tool servers: their configuration, their records, who may use them."""
