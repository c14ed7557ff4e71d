"""The schema's history: one module per change, applied in order, never edited once released."""
