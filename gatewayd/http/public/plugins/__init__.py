"""Routes of functions, tools, valves and tool servers."""
