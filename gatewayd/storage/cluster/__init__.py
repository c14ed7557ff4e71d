"""Stores of the cluster profile, on PostgreSQL only."""
