"""
title: Menu of the module
author: gateway tests
version: 0.1
description: Its buttons stand in the module.
"""

actions = [{"id": "left", "name": "Left"}, {"id": "right", "name": "Right"}]


class Action:
    async def action(self, body: dict, __id__=None):
        return {"content": __id__}
