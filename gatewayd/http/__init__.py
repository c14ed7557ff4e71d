"""The edge: applications, route rows, authentication, errors, bodies, streams.

Imported by `daemon` only; handlers translate and services decide.
"""
