"""
title: Model result
author: gateway tests
version: 0.1
description: Answers with a model of its own.
"""

from typing import Any, Dict, List

from pydantic import BaseModel


class Completion(BaseModel):
    id: str = "made-by-hand"
    object: str = "chat.completion"
    choices: List[Dict[str, Any]]


class Pipe:
    async def pipe(self, body: dict) -> Completion:
        text = "model: " + body["messages"][-1]["content"]
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return Completion(choices=[choice])
