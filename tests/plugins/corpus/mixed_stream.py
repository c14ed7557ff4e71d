"""
title: Mixed stream
author: gateway tests
version: 0.2
description: Yields chunks as mappings, text, events, models, and what it cost.
"""

from pydantic import BaseModel


class Delta(BaseModel):
    content: str


class Choice(BaseModel):
    index: int = 0
    delta: Delta
    finish_reason: str | None = None


class Frame(BaseModel):
    object: str = "chat.completion.chunk"
    choices: list[Choice]


class Pipe:
    async def pipe(self, body: dict):
        yield {"event": {"type": "status", "data": {"description": "mixing", "done": True}}}
        yield {"choices": [{"index": 0, "delta": {"reasoning_content": "let me think"}}]}
        yield {"choices": [{"index": 0, "delta": {"content": "one "}}]}
        yield "two "
        yield Frame(choices=[Choice(delta=Delta(content="three "))])
        yield b"four"
        yield None
        yield {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}}
