"""Database engines: connections, transactions, migrations and column types."""
