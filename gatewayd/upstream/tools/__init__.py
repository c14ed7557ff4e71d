"""Tool servers: OpenAPI and MCP."""
