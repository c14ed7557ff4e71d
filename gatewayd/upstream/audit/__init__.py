"""Receivers of the rows of the audit log: syslog servers and webhooks."""
