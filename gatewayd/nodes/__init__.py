"""Nodes of a cluster: their leases, and the duties that one of them does at a time.

A daemon without a cluster has no node. Services may import this package.
"""
