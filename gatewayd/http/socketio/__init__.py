"""Socket.IO server for the event stream."""
