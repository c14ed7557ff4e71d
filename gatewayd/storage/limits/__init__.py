"""Stores of usage, of limits, and of the counters of their budgets."""
