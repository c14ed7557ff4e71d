"""Model sources: one module for each protocol of a provider."""
