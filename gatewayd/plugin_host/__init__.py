"""What plugins may ask of the gateway, answered by its services."""
