"""The audit log, the doctor, the collection of garbage, limits of age and erasure over the services."""
