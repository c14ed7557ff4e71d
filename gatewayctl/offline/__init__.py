"""Work on the state of a gateway without its daemon, and what comes of it."""
