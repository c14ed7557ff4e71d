"""The routes of the control socket, a module per noun.

Imported by `http.app` only; speaks the models of `gatewayctl.wire`.
"""
