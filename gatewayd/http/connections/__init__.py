"""Connections: capacity, request heads, minimum rates, draining."""
