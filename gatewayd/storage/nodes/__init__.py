"""Stores of the cluster, for PostgreSQL; on SQLite they only show that there are no nodes."""
