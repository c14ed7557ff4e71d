"""
title: Models that hang
version: 0.1
"""

import threading


class Pipe:
    def pipes(self):
        threading.Event().wait()

    def pipe(self, body: dict) -> str:
        return "never"
