"""Events: their types, their delivery to subscribers, and calls that wait for the answer of a user.

The packages above it may import it: the pipeline, the HTTP edge and the adapters.
"""
