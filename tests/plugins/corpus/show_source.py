"""
title: Show the source of a page
author: gateway tests
version: 0.1
description: Shows HTML with its headers under the message.
"""


class Action:
    async def action(self, body: dict):
        shown = f"<p>{body['messages'][-1]['content']}</p>"
        return shown, {"Content-Disposition": "inline", "Content-Type": "text/html"}
