"""
title: Emits nonsense
version: 0.1
"""

import datetime

from pydantic import BaseModel


class Odd(BaseModel):
    type: str = "status"
    data: dict = {"description": "from a model", "done": True}


class Pipe:
    async def pipe(self, body: dict, __event_emitter__) -> str:
        ring = {}
        ring["ring"] = ring
        deep = []
        for _ in range(5000):
            deep = [deep]
        nonsense = [
            None,
            5,
            "status",
            [],
            {},
            object(),
            {"type": None},
            {"type": 7, "data": {}},
            {"type": "status", "data": None},
            {"type": "status", "data": {"description": object(), "when": datetime.datetime(2030, 1, 1)}},
            {"type": "message", "data": {"content": None}},
            {"type": "message", "data": []},
            {"type": "files", "data": {"files": "no list"}},
            {"type": "embeds", "data": {}},
            {"type": "source", "data": ring},
            {"type": "status", "data": {"description": deep}},
            {"type": "replace", "data": {"content": "\ud800 lone"}},
            {"type": "status", "data": {"number": 10**400, 5: {1, 2}, "bytes": b"\xff"}},
            Odd(),
        ]
        for event in nonsense:
            await __event_emitter__(event)
        return "all sent"
