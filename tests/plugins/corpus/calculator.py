"""
title: Calculator
author: gateway tests
version: 0.1
description: Plain methods, with and without annotations.
"""


class Tools:
    def __init__(self):
        self.citation = False

    def add(self, a: int, b: int = 2) -> str:
        """
        Add two numbers.
        The second is two when it is not given.

        :param a: The first number.
        :params b: The second number.
        :return: The sum.
        """
        return f"{a + b}"

    def shout(self, text):
        return text.upper()

    async def emit_status(self, level: str, message: str, done: bool):
        return f"{level} {message} {done}"

    def extract_event_info(self, event_emitter=None):
        return str(event_emitter)

    def _hidden(self):
        return "hidden"
