"""Messages of the commands that watch over the gateway and repair it."""
