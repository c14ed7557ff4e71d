"""The native protocol of Gemini, for sources: requests from chat completions, and answers back; pure."""
