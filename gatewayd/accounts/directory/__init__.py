"""Sign-in by a directory: LDAP, through the adapter `gatewayd.upstream.directory`."""
