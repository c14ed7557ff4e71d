"""Run time of plugins: loading, event loop threads, calls, iterators and limits."""
