"""What breaks something around a daemon: each test of this folder reads back what was acknowledged.

They have the marker `faults`. Those that have the marker `short` too run with all the other tests.
"""
