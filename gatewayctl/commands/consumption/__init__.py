"""What calls of models take: usage, limits and budgets."""
