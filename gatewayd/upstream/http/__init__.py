"""HTTP/1.1 client for providers."""
