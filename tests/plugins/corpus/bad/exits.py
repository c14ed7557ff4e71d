"""
title: Exits
version: 0.1
"""

import asyncio
import sys


async def leave():
    sys.exit(4)


class Pipe:
    async def pipe(self, body: dict) -> str:
        if body["messages"][-1]["content"] == "later":
            asyncio.create_task(leave())
            await asyncio.sleep(0.05)
            return "still here"
        sys.exit(5)
