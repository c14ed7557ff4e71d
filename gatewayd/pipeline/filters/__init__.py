"""Filter functions of plugins: selection, their view of the request, and their changes."""
