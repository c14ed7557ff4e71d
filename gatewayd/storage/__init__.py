"""Storage: tables, one store per noun, and migrations. Only this package uses SQL and tortoise.

Imported by `daemon` only; implements the `interfaces` of the services. Rows for schema and CRUD by key,
`SqlStatement` for everything else, never both in one method.
"""
