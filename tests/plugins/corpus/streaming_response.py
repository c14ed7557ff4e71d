"""
title: Streaming response
author: gateway tests
version: 0.4
description: Answers with a response of the web framework, or with a JSON one when nobody streams.
"""

import json

from fastapi.responses import JSONResponse, StreamingResponse


class Pipe:
    async def frames(self, words):
        for word in words:
            yield (
                "data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": word + " "}}]}) + "\n\n"
            )
        yield "data: [DONE]\n\n"

    async def pipe(self, body: dict):
        words = body["messages"][-1]["content"].split()
        if body.get("stream"):
            return StreamingResponse(self.frames(words), media_type="text/event-stream")
        message = {"role": "assistant", "content": " ".join(words)}
        return JSONResponse({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
