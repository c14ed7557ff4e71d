"""
title: Blocking search
author: gateway tests
version: 0.1
description: Plain code that asks another server, and asks asynchronous code of its own.
requirements: requests, asyncio
"""

import asyncio

import requests


class Pipe:
    async def gather(self, texts):
        return await asyncio.gather(*(asyncio.to_thread(str.upper, text) for text in texts))

    def pipe(self, body: dict, __request__) -> str:
        reply = requests.get(str(__request__.base_url) + "api/version", timeout=10)
        words = asyncio.run(self.gather(["a", "b"]))
        return f"{reply.ok} {' '.join(words)}"
