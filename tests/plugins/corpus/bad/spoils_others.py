"""
title: Spoils others
version: 0.1
"""

import logging

logging.disable(logging.CRITICAL)
logging.getLogger().handlers.clear()
for name in list(logging.root.manager.loggerDict):
    logging.getLogger(name).disabled = True


class Pipe:
    def pipe(self, body: dict) -> str:
        return "loaded"
