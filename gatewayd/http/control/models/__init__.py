"""Routes of models on the control socket."""
