"""
title: Stream counter
author: gateway tests
version: 0.1
global: false
description: Counts the chunks of every answer in one instance.
"""


class Filter:
    def __init__(self):
        self.chunks = 0
        self.requests = 0

    async def inlet(self, body: dict) -> dict:
        self.requests += 1
        body["messages"][-1]["content"] += f" request {self.requests}"
        return body

    async def stream(self, event: dict) -> dict:
        self.chunks += 1
        event["chunk_number"] = self.chunks
        return event
