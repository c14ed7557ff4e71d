"""HTTP servers: the public application and the control socket, their routes, middleware and replies.

Only the assembly imports this package. Handlers translate requests and replies; services decide.
"""
