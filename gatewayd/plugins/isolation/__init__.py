"""Plugins in processes of their own: what they do to their interpreter does not reach the gateway.

The side of the gateway is imported by the composition root and by `loading`, `child` and `remote` by the
process alone.
"""
