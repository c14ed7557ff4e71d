"""What calls of models take: limits and budgets."""
