"""One module per change of the schema, applied in the order of their names. Released ones never change."""
