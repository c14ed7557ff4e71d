"""Metrics in the format of Prometheus.

`families` is the table of all families, `requests` and `calls` count, `readings` reads what other services
know, and `exposition` is the only module that imports prometheus_client.
"""
