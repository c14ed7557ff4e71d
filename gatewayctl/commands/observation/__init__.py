"""What the daemon shows of itself: its metrics and its log."""
