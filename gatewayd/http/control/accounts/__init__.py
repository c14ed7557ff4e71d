"""Routes of users, groups, keys, permissions and SCIM on the control socket."""
