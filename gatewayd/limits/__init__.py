"""Limits of model calls by key, user, group and model: rates, parallel calls, budgets, and the fair queue.

Imported by `assembly`, `http` and `storage`; it imports nothing of them.
"""
