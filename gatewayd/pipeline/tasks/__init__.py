"""Background model tasks: titles, tags and follow-up questions."""
