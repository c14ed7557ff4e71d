"""
title: Many models
author: gateway tests
version: 1.2.3
description: Lists models by a method, with ids as providers have them.
"""

from typing import List


class Pipe:
    def __init__(self):
        self.type = "manifold"
        self.id = "manifold_method"
        self.name = "many/"

    def pipes(self) -> List[dict]:
        return [
            {"id": "vendor/large-2.5", "name": "Large"},
            {"id": "vendor@west", "name": "West"},
            {"id": "a b", "name": "With a blank"},
        ]

    async def pipe(self, body: dict) -> str:
        model = body["model"][body["model"].find(".") + 1 :]
        return f"I am {model}"
