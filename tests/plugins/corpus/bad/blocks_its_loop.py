"""
title: Blocks its loop
version: 0.1
"""

import time


class Pipe:
    async def pipe(self, body: dict, __event_emitter__) -> str:
        await __event_emitter__({"type": "status", "data": {"description": "begun"}})
        time.sleep(3600)
        return "never"
