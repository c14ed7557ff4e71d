"""
title: Event showcase
author: gateway tests
version: 3.0
description: Emits one event of the type that the message names, or several.
"""

import asyncio

EVENTS = {
    "status": {"type": "status", "data": {"description": "at it", "done": False, "hidden": False}},
    "chat:completion": {"type": "chat:completion", "data": {"content": "so far", "done": False}},
    "chat:message:delta": {"type": "chat:message:delta", "data": {"content": "delta", "role": "assistant"}},
    "message": {"type": "message", "data": {"content": "appended"}},
    "chat:message": {"type": "chat:message", "data": {"content": "whole"}},
    "replace": {"type": "replace", "data": {"content": "replaced"}},
    "chat:message:files": {"type": "chat:message:files", "data": {"files": [{"type": "image", "url": "/a"}]}},
    "files": {"type": "files", "data": {"files": [{"type": "image", "url": "/b"}]}},
    "chat:title": {"type": "chat:title", "data": {"title": "Another title"}},
    "bare title": {"type": "chat:title", "data": "Another title"},
    "chat:tags": {"type": "chat:tags", "data": {"tags": ["one", "two"]}},
    "bare tags": {"type": "chat:tags", "data": ["one", "two"]},
    "source": {
        "type": "source",
        "data": {
            "source": {"name": "A page", "url": "https://example.org"},
            "document": ["what it says"],
            "metadata": [{"source": "https://example.org"}],
        },
    },
    "citation": {
        "type": "citation",
        "data": {"source": {"name": "A book"}, "document": ["a line"], "metadata": [{"source": "A book"}]},
    },
    "code": {
        "type": "source",
        "data": {"type": "code_execution", "id": "1", "name": "run", "code": "1 + 1", "language": "python"},
    },
    "notification": {"type": "notification", "data": {"type": "info", "content": "look"}},
    "untyped notification": {"type": "notification", "data": {"content": "look"}},
    "chat:message:favorite": {"type": "chat:message:favorite", "data": {"favorite": True}},
    "execute": {"type": "execute", "data": {"code": "document.title = 'x'"}},
    "embeds": {"type": "embeds", "data": {"embeds": ["<b>one</b>"]}},
    "chat:message:embeds": {"type": "chat:message:embeds", "data": {"embeds": ["<b>two</b>"]}},
    "chat:message:error": {"type": "chat:message:error", "data": {"error": {"content": "went wrong"}}},
    "chat:message:follow_ups": {"type": "chat:message:follow_ups", "data": {"follow_ups": ["and then?"]}},
    "custom": {"type": "terminal:write", "data": {"line": "ls", "colour": None}},
    "without data": {"type": "close_output"},
    "error": {"type": "error", "data": {"message": "own type"}},
    "empty status": {"type": "status", "data": {"description": ""}},
    "empty": {},
    "without type": {"data": {"content": "lost"}},
    "wrong message": {"type": "message", "data": {"content": 5}},
    "wrong status": {"type": "status", "data": "no object"},
    "wrong files": {"type": "files", "data": {"files": {"url": "/c"}}},
    "more embeds": {"type": "embeds", "data": {"embeds": ["<b>three</b>"]}},
    "other embeds": {"type": "embeds", "data": {"embeds": ["<b>four</b>"], "replace": True}},
}


class Pipe:
    async def pipe(self, body: dict, __event_emitter__) -> str:
        for name in body["messages"][-1]["content"].split(","):
            if name == "hold":
                await asyncio.Event().wait()
            await __event_emitter__(EVENTS[name])
        return ""
