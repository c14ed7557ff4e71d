"""
title: Personal settings
author: gateway tests
version: 1.0
description: Reads what the user set, in every way that authors have found.
"""

import json

from pydantic import BaseModel, Field


class Pipe:
    class UserValves(BaseModel):
        tone: str = Field(default="kind", description="How to speak.")
        length: int = 3

    async def pipe(self, body: dict, __user__: dict) -> str:
        valves = __user__["valves"]
        shown = {
            "attribute": valves.tone,
            "getattr": getattr(valves, "tone", None),
            "dict": dict(valves)["tone"],
            "get": __user__.get("valves", {}).tone,
            "validated": self.UserValves.model_validate(valves).tone,
            "again": self.UserValves(**valves.model_dump()).tone,
            "length": valves.length,
        }
        __user__["valves"] = None
        return json.dumps(shown)
