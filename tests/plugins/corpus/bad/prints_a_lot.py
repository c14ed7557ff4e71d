"""
title: Prints a lot
version: 0.1
"""

import sys


class Pipe:
    def pipe(self, body: dict) -> str:
        for number in range(2000):
            print(f"line {number} of noise", end="\n" if number % 7 else "")
        print("x" * 300_000)
        sys.stderr.write("\x1b[31mred\r\n")
        return "printed"
