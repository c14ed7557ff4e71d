"""The service on this machine: its units, users, pages and commands. Imported by the commands only."""
