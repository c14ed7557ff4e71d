"""
title: Spoils others
version: 0.1
"""

import logging
import sys

logging.disable(logging.CRITICAL)
logging.getLogger().handlers.clear()
for name in list(logging.root.manager.loggerDict):
    logging.getLogger(name).disabled = True
sys.setrecursionlimit(10_000)


class Pipe:
    def pipe(self, body: dict) -> str:
        return "loaded"
