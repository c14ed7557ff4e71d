"""Function models: pipes of plugins as a source, and the actions of plugins."""
