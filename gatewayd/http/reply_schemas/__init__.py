"""JSON schemas of the replies of the public application, by noun, for its route modules.

Each schema is a function without arguments, called only when `/openapi.json` is generated. The black-box
tests check their replies against the schemas.
"""
