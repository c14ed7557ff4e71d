"""
title: Forgetful
author: gateway tests
version: 0.1
global: false
description: Changes the body, and forgets to return it.
"""


class Filter:
    def inlet(self, body: dict):
        body["messages"][-1]["content"] += " (changed in place)"

    async def stream(self, event: dict):
        event.clear()

    async def outlet(self, body: dict):
        body["messages"][-1]["content"] += " (outlet)"
