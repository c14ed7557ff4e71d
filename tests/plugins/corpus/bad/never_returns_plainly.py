"""
title: Never returns, in plain code
version: 0.1
"""

import threading


class Pipe:
    def pipe(self, body: dict) -> str:
        threading.Event().wait()
