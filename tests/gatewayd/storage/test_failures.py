"""What becomes of the errors of drivers."""
