"""
title: Never returns
version: 0.1
"""

import asyncio


class Pipe:
    async def pipe(self, body: dict, __event_emitter__) -> str:
        await __event_emitter__({"type": "message", "data": {"content": "so far so good"}})
        await __event_emitter__({"type": "status", "data": {"description": "begun"}})
        await asyncio.Event().wait()
