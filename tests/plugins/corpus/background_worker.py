"""
title: Background worker
author: gateway tests
version: 0.1
description: Answers at once, and goes on with its work.
"""

import asyncio


class Pipe:
    def __init__(self):
        self.seconds = 0
        self.ready = asyncio.Event()
        self.watch = asyncio.create_task(self.warm_up())

    async def warm_up(self):
        await asyncio.sleep(0)
        self.ready.set()

    async def later(self, emitter):
        await asyncio.sleep(0.3)
        await emitter({"type": "status", "data": {"description": "done later", "done": True}})

    async def pipe(self, body: dict, __event_emitter__) -> str:
        await self.ready.wait()
        asyncio.create_task(self.later(__event_emitter__))
        return "at once"
