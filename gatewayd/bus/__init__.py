"""Carries events between the processes of one gateway."""
