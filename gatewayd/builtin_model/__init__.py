"""The built-in model: a supervised llama.cpp child, its weights, and the source over both."""
