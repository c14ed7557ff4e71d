"""Routes for administrators: providers, and the status of the gateway."""
