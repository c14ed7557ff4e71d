"""Plugin code at run time: event loop threads, calls, streams, limits."""
