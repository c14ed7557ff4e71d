"""Files, collections and the queue on the control socket."""
