"""Documents in a chat request: attachments, presets, and the context of the prompt."""
