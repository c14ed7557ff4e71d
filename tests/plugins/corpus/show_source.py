"""
title: Show Source
version: 0.1.0
"""


class Action:
    async def action(self, body: dict):
        shown = f"<p>{body['messages'][-1]['content']}</p>"
        return shown, {"Content-Disposition": "inline", "Content-Type": "text/html"}
