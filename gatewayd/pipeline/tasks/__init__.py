"""Background model tasks: titles, tags, follow-up questions."""
