"""
title: Hides errors
version: 0.1
"""


class Rude(Exception):
    def __str__(self):
        raise ValueError("no text for you")


class Pipe:
    async def pipe(self, body: dict) -> str:
        raise Rude
