"""The Responses protocol for clients: converts requests to chat requests, and chat answers back; pure."""
