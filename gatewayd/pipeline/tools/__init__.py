"""Tools in a chat request: offered to the model, called, and answered within one reply."""
