"""
title: Failing button
author: gateway tests
version: 0.1
description: Does not work.
"""


class Action:
    async def action(self, body: dict, __event_call__=None):
        if body["messages"][-1]["content"] == "ask":
            return await __event_call__(
                {"type": "input", "data": {"title": "t", "message": "m", "placeholder": "p"}}
            )
        raise LookupError("there is nothing to export")
