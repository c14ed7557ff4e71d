"""Runs: answers to stored messages that continue when their client disconnects."""
