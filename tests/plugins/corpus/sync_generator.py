"""
title: Plain generator
author: gateway tests
version: 0.1
description: Counts in plain code.
"""

import time
from typing import Generator


class Pipe:
    def pipe(self, body: dict) -> Generator[str, None, None]:
        for number in range(1, 4):
            time.sleep(0.01)
            yield f"{number} "
        yield "done"
