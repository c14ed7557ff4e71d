"""
title: File reader of the module
author: gateway tests
version: 0.1
global: false
description: Reads the files itself; says so in the module.
"""

file_handler = True


class Filter:
    def inlet(self, body: dict) -> dict:
        body["messages"][-1]["content"] += f" files {len(body.get('files') or [])}"
        return body
