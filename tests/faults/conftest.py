"""What breaks something around a daemon: each test of this folder reads back what was acknowledged.

Scenarios take a while and have the marker `faults`; a short form without it runs with all the other tests.
"""
