"""
title: Models from afar
author: gateway tests
version: 1.0
description: Asks for its models before it lists them.
"""

import asyncio


class Pipe:
    def __init__(self):
        self.type = "manifold"

    async def pipes(self):
        await asyncio.sleep(0)
        return [{"id": "far", "name": "Far away"}]

    async def pipe(self, body: dict) -> str:
        return f"from {body['model']}"
