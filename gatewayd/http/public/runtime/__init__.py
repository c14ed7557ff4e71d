"""The native API of local model runtimes."""
