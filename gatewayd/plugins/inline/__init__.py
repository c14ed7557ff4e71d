"""Inline execution of small plugin methods on the loop of the daemon, in bounded time.

Imported only by `gatewayd.plugins`. See gatewayd-plugins(7), KINDS.
"""
