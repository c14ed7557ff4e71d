"""Commands that watch over the gateway and repair it: audit, doctor, gc."""
