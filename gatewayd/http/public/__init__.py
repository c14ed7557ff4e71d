"""Routes of the public application, a module for each noun.

Only the assembly imports this package.
"""
