"""
title: Exits at load
version: 0.1
global: false
"""

import sys

sys.exit(3)


class Filter:
    def inlet(self, body: dict) -> dict:
        return body
