"""The Responses protocol in the pipeline: items, ids and the references between them."""
