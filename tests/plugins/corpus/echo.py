"""
title: Echo
author: gateway tests
version: 1.0.0
description: Answers with what it was asked, for trying out filters.
"""

import json


class Pipe:
    def pipe(self, body: dict) -> str:
        shown = {key: value for key, value in body.items() if key != "metadata"}
        return json.dumps(shown, sort_keys=True)
