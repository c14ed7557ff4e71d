"""What is kept of people: limits of age. Only `storage`, `http` and `assembly` import this package."""
