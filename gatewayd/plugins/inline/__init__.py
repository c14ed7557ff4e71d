"""Small methods of plugins without a crossing: run on the daemon's loop, in a language that cannot block it.

Imported by `gatewayd.plugins` alone.
"""
