"""
title: Plain iterator
author: gateway tests
version: 0.1
description: Returns an iterator that somebody else made.
"""


class Words:
    def __init__(self, words):
        self.words = list(words)

    def __iter__(self):
        return self

    def __next__(self):
        if not self.words:
            raise StopIteration
        return self.words.pop(0) + " "


class Pipe:
    def pipe(self, body: dict):
        return Words(body["messages"][-1]["content"].split())
