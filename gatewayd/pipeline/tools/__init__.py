"""Tools of the gateway in chat requests: offering them to the model, running calls, returning results."""
