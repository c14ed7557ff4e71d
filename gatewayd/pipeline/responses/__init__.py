"""The Responses protocol in the pipeline: its items, ids and references."""
