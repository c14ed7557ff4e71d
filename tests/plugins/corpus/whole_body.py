"""
title: Whole body
author: gateway tests
version: 0.1
description: Returns the body that it got.
"""


class Action:
    def action(self, body: dict) -> dict:
        body["seen"] = True
        return body
