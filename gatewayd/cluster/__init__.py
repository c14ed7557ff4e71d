"""Several daemons on one database: what each learns of the changes of the others.

Imported by the services that remember rows of the database, and by the assembly.
"""
