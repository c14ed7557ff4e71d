"""Metering, and metrics, traces and the access log, built over the other services."""
