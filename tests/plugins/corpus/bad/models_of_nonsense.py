"""
title: Models of nonsense
version: 0.1
"""


class Pipe:
    def pipes(self):
        return [None, {"name": "without id"}, {"id": 5}, "text", {"id": "good", "name": None}]

    def pipe(self, body: dict) -> str:
        return body["model"]
