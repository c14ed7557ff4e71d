"""
title: Extra fields
author: gateway tests
version: 0.1
global: false
description: Adds what the model server should get, and tells the others by the metadata.
"""

from typing import Optional


class Filter:
    def inlet(self, body: dict, __metadata__: Optional[dict] = None, __model__: dict = None) -> dict:
        assert body["metadata"] is __metadata__
        body["chat_template_kwargs"] = {"enable_thinking": False}
        body["metadata"]["mine"] = "kept"
        body["user"] = __model__["id"]
        return body

    def outlet(self, body: dict, __metadata__: Optional[dict] = None) -> dict:
        return body
