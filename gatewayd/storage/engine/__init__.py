"""The database engines: connections, transactions, migrations, field types."""
