"""What calls of models take, on the wire."""
