"""
title: Asking
author: gateway tests
version: 1.4
description: Asks the user in the middle of the answer.
"""

import json


class Pipe:
    async def pipe(self, body: dict, __event_call__=None, __event_emitter__=None) -> str:
        wanted = body["messages"][-1]["content"]
        try:
            if wanted == "confirmation":
                answer = await __event_call__(
                    {"type": "confirmation", "data": {"title": "Sure?", "message": "Shall it go on?"}}
                )
            elif wanted == "input":
                answer = await __event_call__(
                    {
                        "type": "input",
                        "data": {"title": "Name", "message": "Which?", "placeholder": "a name", "value": "x"},
                    }
                )
                answer = answer["value"] if isinstance(answer, dict) else answer
            elif wanted == "password":
                answer = await __event_call__(
                    {
                        "type": "input",
                        "data": {"title": "Key", "message": "Which?", "placeholder": "", "type": "password"},
                    }
                )
            elif wanted == "execute":
                answer = await __event_call__(
                    {"type": "execute", "data": {"code": "return navigator.language;"}}
                )
            else:
                answer = await __event_call__({"type": wanted, "data": {}})
        except TimeoutError as e:
            return f"TimeoutError: {e}"
        except RuntimeError as e:
            return f"RuntimeError: {e}"
        return json.dumps(answer)
