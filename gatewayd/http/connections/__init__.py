"""Connections of the servers: capacity, request heads, minimum rates and draining."""
