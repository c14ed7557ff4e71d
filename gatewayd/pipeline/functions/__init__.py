"""Function models and actions: pipes of plugins as a model source, and plugin actions under messages."""
