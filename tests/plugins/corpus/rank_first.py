"""
title: Rank first
author: gateway tests
version: 0.1
global: false
description: Writes its name into the question, before others.
"""

from pydantic import BaseModel, Field


class Filter:
    class Valves(BaseModel):
        priority: int = Field(default=-5, description="Lower runs first.")

    def __init__(self):
        self.valves = self.Valves()

    def inlet(self, body: dict) -> dict:
        body["messages"][-1]["content"] += " first"
        return body

    def outlet(self, body: dict) -> dict:
        body["messages"][-1]["content"] += " first"
        return body
