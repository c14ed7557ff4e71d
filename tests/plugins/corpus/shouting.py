"""
title: Shouting
author: gateway tests
version: 0.1
global: false
description: Changes each chunk, and the answer.
"""


class Filter:
    def stream(self, event: dict) -> dict:
        for choice in event.get("choices", []):
            delta = choice.get("delta", {})
            if delta.get("content"):
                delta["content"] = delta["content"].upper()
        return event

    def outlet(self, body: dict, __user__: dict = None) -> dict:
        last = body["messages"][-1]
        last["content"] = f"{last['content']} -- to {__user__['name']}"
        return body
