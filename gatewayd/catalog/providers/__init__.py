"""Providers and runtimes as administrators manage them: records, forms, the service over their store."""
