"""
title: Passport (plain button)
author: gateway tests
version: 0.3.1
icon_url: data:image/svg+xml;base64,PHN2Zy8+
description: Shows everything that an action can ask for.
"""

import json

from pydantic import BaseModel, Field


def stamp(given: dict) -> dict:
    """Everything of the call as JSON; what is no JSON by the name of its type."""
    given.pop("self", None)
    return json.loads(json.dumps(given, default=lambda value: type(value).__name__))


class Action:
    class Valves(BaseModel):
        greeting: str = Field(default="hello", description="How to begin.")

    class UserValves(BaseModel):
        nickname: str = Field(default="", description="How to call you.")

    def __init__(self):
        self.valves = self.Valves()

    def action(
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
        return {"content": json.dumps(stamp(dict(locals())))}
