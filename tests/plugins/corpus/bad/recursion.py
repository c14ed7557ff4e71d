"""
title: Recursion
version: 0.1
"""


class Pipe:
    def down(self, number: int) -> int:
        return self.down(number + 1)

    async def pipe(self, body: dict) -> str:
        return str(self.down(0))
