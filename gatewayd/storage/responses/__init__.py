"""Stores of the Responses protocol: responses, and the ids of those that providers store."""
