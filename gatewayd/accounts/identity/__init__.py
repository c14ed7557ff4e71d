"""Accounts of people whom something else signs in: an identity provider, a directory, a proxy.

The HTTP routes and the assembly import it; it imports the account services only.
"""
