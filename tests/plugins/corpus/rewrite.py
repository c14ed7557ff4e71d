"""
title: Rewrite
author: gateway tests
version: 0.1
description: Returns the messages with another text.
"""


class Action:
    async def action(self, body: dict) -> dict:
        last = dict(body["messages"][-1])
        last["content"] = last["content"][::-1]
        return {"messages": [*body["messages"][:-1], last]}
