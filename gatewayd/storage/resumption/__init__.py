"""Stores of resumable streams and of replies to repeated requests."""
