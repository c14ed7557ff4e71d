"""Runs: answers to stored messages that go on without their client."""
