"""
title: File reader
author: gateway tests
version: 0.1
global: false
description: Reads the files itself; says so on the instance.
"""


class Filter:
    def __init__(self):
        self.file_handler = True

    def inlet(self, body: dict, __files__=None) -> dict:
        names = [file.get("id") for file in body.get("files") or []]
        body["messages"][-1]["content"] += f" files {names} {len(__files__ or [])}"
        return body
