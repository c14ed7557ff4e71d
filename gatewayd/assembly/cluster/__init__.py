"""Assembly of the cluster profile."""
