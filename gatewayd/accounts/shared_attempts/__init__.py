"""Tries of sign-ins that several nodes count together."""
