"""What is kept of people: limits of age, export and erasure.

Only `storage`, `http` and `assembly` import this package.
"""
