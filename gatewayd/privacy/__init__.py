"""What is kept of people: limits of age, and erasure.

Only `storage`, `http` and `assembly` import this package.
"""
