"""
title: Counting
author: gateway tests
version: 0.1
description: Knows how often it was asked.
"""


class Pipe:
    def __init__(self):
        self.asked = 0

    async def pipe(self, body: dict) -> str:
        self.asked += 1
        return f"{self.asked}"
