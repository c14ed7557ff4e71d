"""
title: Passport (filter)
author: gateway tests
version: 0.3.1
global: false
description: Shows everything that each hook of a filter can ask for.
"""

import json

from pydantic import BaseModel, Field


def stamp(given: dict) -> dict:
    """Everything of the call as JSON; what is no JSON by the name of its type."""
    given.pop("self", None)
    return json.loads(json.dumps(given, default=lambda value: type(value).__name__))


class Filter:
    class Valves(BaseModel):
        greeting: str = Field(default="hello", description="How to begin.")

    class UserValves(BaseModel):
        nickname: str = Field(default="", description="How to call you.")

    def __init__(self):
        self.valves = self.Valves()

    async def inlet(
        self,
        body: dict,
        __user__: dict,
        __request__,
        __event_emitter__,
        __event_call__,
        __metadata__: dict,
        __model__: dict,
        __files__: list,
        __messages__: list,
        __task__: str,
        __task_body__: dict,
        __chat_id__: str,
        __message_id__: str,
        __session_id__: str,
        __tools__: dict,
        __id__: str,
        __pipe_id__: str,
        __oauth_token__: dict,
        __valves__,
    ) -> dict:
        note = stamp({key: value for key, value in locals().items() if key != "body"})
        body["messages"].insert(0, {"role": "system", "content": json.dumps(note)})
        return body

    async def stream(
        self,
        event: dict,
        __user__: dict,
        __request__,
        __event_emitter__,
        __event_call__,
        __metadata__: dict,
        __model__: dict,
        __files__: list,
        __messages__: list,
        __task__: str,
        __task_body__: dict,
        __chat_id__: str,
        __message_id__: str,
        __session_id__: str,
        __tools__: dict,
        __id__: str,
        __pipe_id__: str,
        __oauth_token__: dict,
        __valves__,
    ) -> dict:
        note = stamp({key: value for key, value in locals().items() if key != "event"})
        event["passport"] = note
        return event

    async def outlet(
        self,
        body: dict,
        __user__: dict,
        __request__,
        __event_emitter__,
        __event_call__,
        __metadata__: dict,
        __model__: dict,
        __files__: list,
        __messages__: list,
        __task__: str,
        __task_body__: dict,
        __chat_id__: str,
        __message_id__: str,
        __session_id__: str,
        __tools__: dict,
        __id__: str,
        __pipe_id__: str,
        __oauth_token__: dict,
        __valves__,
    ) -> dict:
        note = stamp({key: value for key, value in locals().items() if key != "body"})
        body["messages"][-1]["content"] = json.dumps(note)
        return body
