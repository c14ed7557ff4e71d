"""What the models of each maker take, and the change of requests to that (gatewayd-dialects(7))."""
