"""Schemas of the JSON replies of the public application, by noun; its route modules import them.

Each is a function without arguments, called only when `/openapi.json` is made. What is in them is true of the
replies that the black-box tests get.
"""
