"""
title: Tool with settings
author: gateway tests
version: 0.1
description: A tool with valves of its own and of each user.
"""

from typing import Any, Callable

from pydantic import BaseModel, Field


class EventEmitter:
    def __init__(self, event_emitter: Callable[[dict], Any] = None):
        self.event_emitter = event_emitter

    async def emit(self, description="Unknown State", status="in_progress", done=False):
        if self.event_emitter:
            await self.event_emitter(
                {"type": "status", "data": {"status": status, "description": description, "done": done}}
            )


class Tools:
    class Valves(BaseModel):
        base: str = Field(default="https://example.org", description="Where to ask.")

    class UserValves(BaseModel):
        retries: int = Field(default=1, ge=0)

    def __init__(self):
        self.valves = self.Valves()

    async def search(self, query: str, __user__: dict, __event_emitter__=None) -> str:
        """
        Search.

        :param query: What to look for.
        """
        emitter = EventEmitter(__event_emitter__)
        await emitter.emit(f"Searching {query}")
        valves = __user__.get("valves") or self.UserValves()
        await emitter.emit("Found", status="complete", done=True)
        return f"{self.valves.base} {valves.retries} {query}"
