"""
title: Careful
author: gateway tests
version: 0.1
global: false
description: A filter that asks before it lets a question pass.
"""


class Filter:
    async def inlet(self, body: dict, __event_call__=None, __event_emitter__=None, response=None) -> dict:
        answer = await __event_call__(
            {"type": "confirmation", "data": {"title": "Send?", "message": body["messages"][-1]["content"]}}
        )
        if not answer:
            raise Exception("The user does not want that.")
        await __event_emitter__({"type": "notification", "data": {"type": "success", "content": "sent"}})
        return body
