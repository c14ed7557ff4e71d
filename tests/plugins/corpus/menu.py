"""
title: Menu
author: gateway tests
version: 0.1
icon_url: data:image/svg+xml;base64,PHN2Zy8+
description: Two buttons of one function.
"""

from typing import Optional


class Action:
    actions = [
        {"id": "shorten", "name": "Shorten", "icon_url": "data:image/png;base64,iVBORw0KGgo="},
        {"id": "lengthen", "name": "Lengthen"},
    ]

    async def action(self, body: dict, __id__: Optional[str] = None) -> dict:
        return {"content": f"{__id__} {body['messages'][-1]['content']}"}
