"""The tables: a row is how a record is kept; everything else works with records."""
