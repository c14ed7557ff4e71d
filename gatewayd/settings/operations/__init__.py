"""Settings of operations: metrics, traces, the access log."""
