"""Stores of sign-in: sessions, and links that work once."""
