"""Takes rights from a process of ours for good: files, the network, other processes.

May be imported by any; imports nothing of the gateway.
"""
