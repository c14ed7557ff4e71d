"""Commands that watch over the gateway and mend it: audit, doctor, gc."""
