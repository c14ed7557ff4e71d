"""What the running daemon measures about itself: plain numbers, and notes on the present request."""
