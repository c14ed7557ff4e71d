"""Messages of the commands that watch over the gateway and mend it."""
