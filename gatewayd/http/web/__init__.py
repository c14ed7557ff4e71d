"""The page: its files under hashed addresses, the HTML of its views, and the policies of both.

Only the assembly imports this package.
"""
