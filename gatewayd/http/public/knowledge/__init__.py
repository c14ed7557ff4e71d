"""Collections: routes, bodies, replies, synchronisation, search."""
