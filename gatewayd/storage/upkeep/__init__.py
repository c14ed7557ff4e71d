"""Stores of what watches over the gateway: the audit log, and figures of what is stored."""
