"""
title: Syntax error
version: 0.1
"""


class Pipe:
    def pipe(self, body: dict) -> str
        return "a colon is missing"
