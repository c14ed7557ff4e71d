"""The audit log, the doctor and the collection of garbage over the services."""
