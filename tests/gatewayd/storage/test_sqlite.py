"""The file, its modes, its pragmas, and what it says when it cannot write."""
