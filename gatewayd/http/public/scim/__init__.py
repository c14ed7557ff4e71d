"""Routes of SCIM 2.0: users, groups and discovery."""
