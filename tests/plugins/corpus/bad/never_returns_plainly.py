"""
title: Never returns, in plain code
version: 0.1
"""

import asyncio
import threading


class Pipe:
    def pipe(self, body: dict, __event_emitter__) -> str:
        asyncio.run(__event_emitter__({"type": "status", "data": {"description": "begun"}}))
        threading.Event().wait()
