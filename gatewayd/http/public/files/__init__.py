"""Files: routes, uploads, status, processing."""
