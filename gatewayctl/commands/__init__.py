"""The commands, a module per noun.

Imported by `gatewayctl.main` only.
"""
