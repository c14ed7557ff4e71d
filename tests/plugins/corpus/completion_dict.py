"""
title: Completion as a mapping
author: gateway tests
version: 0.1
description: Answers as a provider does, with what it cost.
"""


class Pipe:
    def pipe(self, body: dict) -> dict:
        return {
            "choices": [
                {
                    "index": 0,
                    "message": {
                        "role": "assistant",
                        "content": "mapping: " + body["messages"][-1]["content"],
                    },
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
        }
