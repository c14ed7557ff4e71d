"""Sources of plugins: header, compilation, static analysis, check and requirements."""
