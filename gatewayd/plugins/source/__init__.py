"""The source of plugins: header, static analysis, check, requirements."""
