"""
title: Line proxy
author: gateway tests
version: 2.0.0
description: Passes on the lines of another server, as requests gives them.
requirements: requests
"""

import json
from typing import Iterator, Union


class Pipe:
    def __init__(self):
        self.type = "pipe"

    def lines(self, words) -> Iterator[bytes]:
        for word in words:
            chunk = {"choices": [{"index": 0, "delta": {"content": word + " "}, "finish_reason": None}]}
            yield b"data: " + json.dumps(chunk).encode()
            yield b""
        yield b"data: [DONE]"

    def pipe(self, body: dict) -> Union[str, Iterator[bytes]]:
        words = body["messages"][-1]["content"].split()
        if body["stream"]:
            return self.lines(words)
        return " ".join(words)
