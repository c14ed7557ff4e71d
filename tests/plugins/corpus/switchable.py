"""
title: Switchable
author: gateway tests
version: 0.1
global: false
description: Runs when the user has switched it on.
"""


class Filter:
    def __init__(self):
        self.toggle = True
        self.icon = "data:image/svg+xml;base64,PHN2Zy8+"

    async def inlet(self, body: dict, __event_emitter__) -> dict:
        await __event_emitter__({"type": "status", "data": {"description": "switched on", "done": True}})
        body["messages"][-1]["content"] += " (switched on)"
        return body
