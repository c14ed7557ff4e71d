"""
title: Messages only
author: gateway tests
version: 0.3
description: Writes its answer with events, and returns nothing.
"""


class Pipe:
    async def pipe(self, body: dict, __event_emitter__=None, __task__=None):
        if __task__:
            return "A title"
        question = body["messages"][-1]["content"]
        for word in ("written ", "by ", "events"):
            await __event_emitter__({"type": "message", "data": {"content": word}})
        if question == "nothing":
            return None
        if question == "text":
            return "the returned text"
        return ""
