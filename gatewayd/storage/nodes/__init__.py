"""Stores of the cluster, which work on PostgreSQL only."""
