"""Whole databases: consistent copies of files, and copies between SQLite and PostgreSQL."""
