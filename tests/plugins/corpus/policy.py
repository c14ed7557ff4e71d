"""
title: Policy
author: gateway tests
version: 0.1
global: false
description: Refuses words that are not allowed, and too many questions.
"""

from fastapi import HTTPException


class Filter:
    def inlet(self, body: dict) -> dict:
        text = body["messages"][-1]["content"]
        if "forbidden" in text:
            raise Exception("This word is not allowed here.")
        if "often" in text:
            raise HTTPException(status_code=429, detail="Too many questions, wait a minute.")
        if "locked" in text:
            raise HTTPException(403, "Not for you.")
        return body

    def stream(self, event: dict) -> dict:
        raise ValueError("the stream hook fails")

    def outlet(self, body: dict) -> dict:
        raise ValueError("the outlet fails")
