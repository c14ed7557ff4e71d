"""
title: Manifold by name alone
author: gateway tests
version: 1.0
description: Says that it is a manifold, and lists nothing.
"""


class Pipe:
    def __init__(self):
        self.type = "manifold"
        self.name = "One of one"

    def pipe(self, body: dict) -> str:
        return body["model"]
