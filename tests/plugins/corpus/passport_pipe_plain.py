"""
title: Passport (plain model)
author: gateway tests
version: 0.3.1
description: Shows everything that a pipe can ask for.
"""

import json

from pydantic import BaseModel, Field


def stamp(given: dict) -> dict:
    """Everything of the call as JSON; what is no JSON by the name of its type."""
    given.pop("self", None)
    return json.loads(json.dumps(given, default=lambda value: type(value).__name__))


class Pipe:
    class Valves(BaseModel):
        greeting: str = Field(default="hello", description="How to begin.")

    class UserValves(BaseModel):
        nickname: str = Field(default="", description="How to call you.")

    def __init__(self):
        self.valves = self.Valves()

    def pipe(
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
    ) -> str:
        return json.dumps(stamp(dict(locals())))
