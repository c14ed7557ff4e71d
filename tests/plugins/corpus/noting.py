"""
title: Noting
author: gateway tests
version: 0.1
description: A button that tells and returns nothing.
"""


class Action:
    async def action(self, body: dict, __event_emitter__=None, __event_call__=None, __user__=None) -> None:
        await __event_emitter__(
            {"type": "status", "data": {"description": f"noted {body['id']}", "done": True}}
        )
        await __event_emitter__(
            {"type": "citation", "data": {"source": {"name": "n"}, "document": ["d"], "metadata": []}}
        )
