"""Requests to identity providers."""
