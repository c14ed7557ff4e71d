"""
title: Two models
author: gateway tests
version: 1.0
description: Lists its models as an attribute.
"""


class Pipe:
    def __init__(self):
        self.type = "manifold"
        self.name = "Two: "
        self.pipes = [{"id": "fast", "name": "Fast"}, {"id": "good", "name": "Good"}]

    def pipe(self, body: dict) -> str:
        return body["model"].split(".", 1)[-1]
