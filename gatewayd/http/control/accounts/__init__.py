"""Users, groups, keys, permissions and provisioning on the control socket."""
