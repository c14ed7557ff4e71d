"""Routes of the control socket, a module for each noun, with the models of `gatewayctl.wire`.

Only the assembly imports this package.
"""
