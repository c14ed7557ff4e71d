"""The audit log: rows in a chain of hashes, their writer, retention, checkpoints and forwarding.

The edge records entries; the assembly gives the store. gatewayd-operations(7), AUDIT LOG, is the contract.
"""
