"""Socket.IO clients as a second front end of the event stream."""
