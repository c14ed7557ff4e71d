"""Responses: streams, files, JSON in parts, headers."""
