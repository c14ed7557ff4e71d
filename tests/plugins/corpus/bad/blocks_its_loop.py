"""
title: Blocks its loop
version: 0.1
"""

import time


class Pipe:
    async def pipe(self, body: dict) -> str:
        time.sleep(3600)
        return "never"
