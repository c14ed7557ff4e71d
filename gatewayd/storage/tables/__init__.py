"""Row classes of the database tables; other packages use records instead."""
