"""
title: Workflow bridge
author: gateway tests
version: 2.2.0
description: Hands the question to a workflow server, with blocking requests, and finds the chat in the emitter.
requirements: requests
"""

from typing import Awaitable, Callable, Optional

import requests
from pydantic import BaseModel, Field


def extract_event_info(event_emitter) -> tuple[Optional[str], Optional[str]]:
    if not event_emitter or not event_emitter.__closure__:
        return None, None
    for cell in event_emitter.__closure__:
        if isinstance(request_info := cell.cell_contents, dict):
            chat_id = request_info.get("chat_id")
            message_id = request_info.get("message_id")
            return chat_id, message_id
    return None, None


class Pipe:
    class Valves(BaseModel):
        path: str = Field(default="/health")
        emit_interval: float = Field(default=2.0, description="Seconds between two tellings")
        enable_status_indicator: bool = Field(default=True)

    def __init__(self):
        self.type = "pipe"
        self.id = "workflow"
        self.name = "Workflow"
        self.valves = self.Valves()
        self.last_emit_time = 0

    async def emit_status(self, __event_emitter__, level: str, message: str, done: bool):
        if __event_emitter__ and self.valves.enable_status_indicator:
            await __event_emitter__(
                {
                    "type": "status",
                    "data": {
                        "status": "complete" if done else "in_progress",
                        "level": level,
                        "description": message,
                        "done": done,
                    },
                }
            )

    async def pipe(
        self,
        body: dict,
        __user__: Optional[dict] = None,
        __event_emitter__: Callable[[dict], Awaitable[None]] = None,
        __event_call__: Callable[[dict], Awaitable[dict]] = None,
        __request__=None,
    ) -> Optional[dict]:
        await self.emit_status(__event_emitter__, "info", "Calling the workflow...", False)
        chat_id, message_id = extract_event_info(__event_emitter__)
        response = requests.get(f"{str(__request__.base_url).rstrip('/')}{self.valves.path}", timeout=10)
        await self.emit_status(__event_emitter__, "info", "Complete", True)
        return f"{response.status_code} {chat_id} {message_id}"
