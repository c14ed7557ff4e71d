"""Installation of the service: units, users, pages and commands. Imported by `commands` only."""
