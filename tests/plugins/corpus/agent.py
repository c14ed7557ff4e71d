"""
title: Agent
author: gateway tests
version: 0.2
description: Uses the tools of the request itself.
"""

import json


class Pipe:
    async def pipe(self, body: dict, __tools__: dict, __metadata__: dict) -> str:
        name, arguments = json.loads(body["messages"][-1]["content"])
        tool = __tools__[name]
        result = await tool["callable"](**arguments)
        return f"{tool['tool_id']} {tool['spec']['name']} {result}"
