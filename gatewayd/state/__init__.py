"""Declarative state: export, plan and apply a document of the objects of the gateway.

Imported by the control routes and the assembly. The services own all rules and writes.
"""
