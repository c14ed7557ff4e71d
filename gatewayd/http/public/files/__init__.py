"""Routes of files: uploads, states, texts and processing."""
