"""The command line of the gateway; imports nothing of the daemon."""
