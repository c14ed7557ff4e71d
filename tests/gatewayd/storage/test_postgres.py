"""The pool and its claim."""
