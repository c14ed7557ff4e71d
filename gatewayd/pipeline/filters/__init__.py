"""Filters of plugins: which run for a request, what they see of it, and what they change."""
