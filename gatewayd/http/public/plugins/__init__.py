"""Functions, tools and tool servers."""
