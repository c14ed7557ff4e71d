"""The HTTP/1.1 client towards providers."""
