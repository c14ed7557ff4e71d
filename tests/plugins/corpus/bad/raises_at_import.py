"""
title: Raises at import
version: 0.1
"""

import os

KEY = os.environ["A_KEY_THAT_NOBODY_HAS_SET"]


class Pipe:
    def pipe(self, body: dict) -> str:
        return KEY
