"""The Converse protocol of Bedrock, for sources: requests from chat completions, and answers back; pure."""
