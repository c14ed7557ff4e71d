"""Models on the control socket."""
