"""
title: Rich results
author: gateway tests
version: 0.1
description: Results of every kind.
"""

from fastapi.responses import HTMLResponse


class Tools:
    def page(self):
        """Show a page."""
        return HTMLResponse(content="<h1>page</h1>", headers={"Content-Disposition": "inline"})

    def page_with_context(self) -> tuple:
        """Show a page and tell the model what is on it."""
        page = HTMLResponse(content="<h1>tuple</h1>", headers={"Content-Disposition": "inline"})
        return page, {"rows": 2}

    def page_source(self) -> HTMLResponse:
        """Return the source of a page."""
        return HTMLResponse(content="<p>read me</p>")

    def table(self) -> list:
        """Return a list."""
        return [1, {"two": 2}]

    def mapping(self) -> dict:
        """Return a mapping."""
        return {"grüße": "yes"}

    async def text(self) -> str:
        """Return a text."""
        return "a text"

    async def nothing(self):
        """Return nothing."""

    async def number(self):
        """Return a number."""
        return 7

    async def parts(self):
        """Return what a tool server would."""
        return [
            {"type": "text", "text": "a picture"},
            {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"},
        ]

    async def picture(self) -> str:
        """Return a picture."""
        return "data:image/png;base64,aGVsbG8="

    async def fails(self) -> str:
        """Fail."""
        raise PermissionError("the door is closed")

    async def writes(self, __event_emitter__=None) -> str:
        """Write into the answer."""
        await __event_emitter__({"type": "message", "data": {"content": "written by a tool "}})
        await __event_emitter__({"type": "embeds", "data": {"embeds": ["<i>tool</i>"]}})
        return "written"

    async def asks(self, __event_call__=None) -> str:
        """Ask the user."""
        return await __event_call__(
            {"type": "input", "data": {"title": "Which?", "message": "Name it", "placeholder": "name"}}
        )
