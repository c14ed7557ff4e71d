"""
title: Spins for ever at load
version: 0.1
"""

while True:
    pass


class Pipe:
    def pipe(self, body: dict) -> str:
        return "never"
