"""
title: Tool caller
author: gateway tests
version: 0.9
description: Calls the tools that the message names as JSON, as a model does, and tells what they gave.
"""

import json


class Pipe:
    async def pipe(self, body: dict):
        messages = body["messages"]
        if messages[-1]["role"] == "tool":
            results = [message["content"] for message in messages if message["role"] == "tool"]
            yield json.dumps(results)
            return
        wanted = messages[-1]["content"]
        if wanted == "list":
            yield json.dumps([tool["function"] for tool in body.get("tools", [])])
            return
        calls = [
            {
                "index": index,
                "id": f"call_{index}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for index, (name, arguments) in enumerate(json.loads(wanted))
        ]
        yield {"choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": calls}}]}
        yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
