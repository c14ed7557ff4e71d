"""Routes of the native API of local model runtimes."""
