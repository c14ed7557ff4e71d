"""Clients of tool servers: OpenAPI and MCP."""
