"""Plugins and tool servers on the control socket."""
