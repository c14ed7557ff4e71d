"""What `gatewayctl doctor` looks for: checks that read and change nothing.

A check takes plain values and yields findings; the assembly gathers the values.
"""
