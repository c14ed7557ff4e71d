"""Parts of a model's completion: readers of deltas, the assembler of tool calls, and limits; pure.

Every package above the ground floor may import it.
"""
