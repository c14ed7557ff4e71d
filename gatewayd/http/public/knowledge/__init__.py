"""Routes of collections: members, synchronisation and search."""
