"""Addresses of databases."""
