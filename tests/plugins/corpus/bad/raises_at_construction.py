"""
title: Raises at construction
version: 0.1
"""


class Tools:
    def __init__(self):
        raise RuntimeError("cannot reach the licence server")

    def work(self) -> str:
        """Work."""
        return "never"
