"""Routes of plugins and tool servers on the control socket."""
