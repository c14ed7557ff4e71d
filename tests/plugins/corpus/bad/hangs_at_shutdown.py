"""
title: Hangs at shutdown
version: 0.1
"""

import time


class Pipe:
    async def on_shutdown(self):
        time.sleep(3600)

    def pipe(self, body: dict) -> str:
        return "well"
