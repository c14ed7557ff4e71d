"""
title: Asks itself
version: 0.1
"""

from open_webui.utils.chat import generate_chat_completion


class Pipe:
    async def pipe(self, body: dict, __request__, __user__: dict) -> str:
        form = {"model": "asks_itself", "messages": body["messages"], "stream": False}
        return (await generate_chat_completion(__request__, form, __user__))["choices"][0]["message"][
            "content"
        ]
