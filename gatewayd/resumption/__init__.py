"""Streams that go on without their client, and replies of repeated requests; imported by storage and http."""
