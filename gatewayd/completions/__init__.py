"""What an answer of a model is made of: the readers of its deltas, and the assembler of its tool calls; pure.

Everything above the ground floor may import it.
"""
