"""Routes of the Responses protocol: forwarded where the source speaks it, converted for all other sources."""
