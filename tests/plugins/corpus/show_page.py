"""
title: Show a page
author: gateway tests
version: 0.1
description: Shows a page under the message.
"""

from fastapi.responses import HTMLResponse


class Action:
    async def action(self, body: dict):
        kind = body["messages"][-1]["content"]
        page = HTMLResponse(content="<h1>chart</h1>", headers={"Content-Disposition": "inline"})
        if kind == "tuple":
            return (page, {"shown": "a chart"})
        if kind == "plain":
            return HTMLResponse(content="<p>source</p>")
        return page
