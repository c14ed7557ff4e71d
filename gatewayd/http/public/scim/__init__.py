"""SCIM 2.0: resources, discovery, messages."""
