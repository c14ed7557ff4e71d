"""Builds the gateway: adapters into services, services into routes, routes into the two applications.

With `daemon` the composition root: nothing else constructs a service or knows an adapter. Imported by
`daemon`, `quickstart` and `command` only.
"""
