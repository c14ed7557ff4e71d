"""
title: Life cycle
author: gateway tests
version: 0.1
description: Notes what happens to it.
"""

from pydantic import BaseModel, Field


class Pipe:
    class Valves(BaseModel):
        NAME: str = Field(default="unset", description="Any name.")

    def __init__(self):
        self.valves = self.Valves()
        self.notes = []

    async def on_startup(self):
        self.notes.append("startup")

    async def on_shutdown(self):
        print("lifecycle: good bye")

    async def on_valves_updated(self):
        self.notes.append(f"valves {self.valves.NAME}")

    async def pipe(self, body: dict) -> str:
        return f"{' '.join(self.notes)}; {self.valves.NAME}"
