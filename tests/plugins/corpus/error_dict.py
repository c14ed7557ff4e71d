"""
title: Error as a mapping
author: gateway tests
version: 0.1
description: Says what is wrong instead of answering.
"""


class Pipe:
    async def pipe(self, body: dict) -> dict:
        if body["messages"][-1]["content"] == "raise":
            raise ConnectionError("the model server does not answer")
        return {"error": {"message": "the key is not valid", "code": 401}}
