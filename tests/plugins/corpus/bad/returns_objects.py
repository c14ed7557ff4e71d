"""
title: Returns objects
version: 0.1
"""


class Pipe:
    def pipe(self, body: dict):
        if body["messages"][-1]["content"] == "mapping":
            return {"choices": [{"message": {"content": object()}}]}
        if body["messages"][-1]["content"] == "generator":
            return (object() for _ in range(2))
        return object()
