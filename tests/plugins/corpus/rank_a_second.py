"""
title: Rank second
author: gateway tests
version: 0.1
global: false
description: Writes its name into the question, after others; its id alone would put it before them.
"""

from pydantic import BaseModel, Field


class Filter:
    class Valves(BaseModel):
        priority: int = Field(default=5, description="Lower runs first.")

    def __init__(self):
        self.valves = self.Valves()

    async def inlet(self, body: dict) -> dict:
        body["messages"][-1]["content"] += " second"
        return body

    async def outlet(self, body: dict) -> dict:
        body["messages"][-1]["content"] += " second"
        return body
