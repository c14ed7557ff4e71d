"""All SQL: tables, one store per noun, migrations. The only home of tortoise.

Imported by `daemon` only; implements the `interfaces` of the services.
"""
