"""
title: Token stream
author: gateway tests
version: 1.1
description: Answers word by word, and tells how far it is.
"""

import asyncio
from typing import AsyncGenerator


class Pipe:
    def __init__(self):
        self.name = "Token stream"
        self.closed = 0

    async def pipe(self, body: dict, __event_emitter__=None) -> AsyncGenerator[str, None]:
        words = body["messages"][-1]["content"].split()
        patience = 0.05 if "slowly" in words else 0
        try:
            for number, word in enumerate(words):
                if __event_emitter__:
                    await __event_emitter__(
                        {
                            "type": "status",
                            "data": {"description": f"word {number}", "done": False, "hidden": True},
                        }
                    )
                yield word + " "
                await asyncio.sleep(patience)
            yield f"(closed {self.closed})"
        finally:
            self.closed += 1
