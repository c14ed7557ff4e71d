"""The LDAP client: the adapter of `gatewayd.accounts.directory`."""
