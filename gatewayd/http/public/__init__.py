"""The routes of the public application, a module per noun.

Imported by `http.app` only.
"""
