"""
title: Ignores the stop
version: 0.1
"""

import asyncio


class Pipe:
    async def pipe(self, body: dict, __event_emitter__) -> str:
        await __event_emitter__({"type": "status", "data": {"description": "begun"}})
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                pass
