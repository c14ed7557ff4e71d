"""The audit log, the doctor, garbage, limits of age, erasure and declarative state over the services."""
