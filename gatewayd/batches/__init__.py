"""Batches: files of requests that run at low priority as their user."""
