"""Writers of responses: event streams, lines of JSON, files and JSON in parts."""
