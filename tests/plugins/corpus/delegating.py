"""
title: Delegating
author: gateway tests
version: 0.6.0
description: Asks another model for an answer, and for the title itself.
"""

from fastapi import Request
from open_webui.constants import TASKS
from open_webui.models.users import UserModel, Users
from open_webui.utils.chat import generate_chat_completion


class Pipe:
    async def pipe(
        self,
        body: dict,
        __user__: dict,
        __request__: Request,
        __task__: str = None,
        __task_body__: dict = None,
    ) -> str:
        if __task__ == TASKS.TITLE_GENERATION:
            return f"A title of {len(__task_body__['messages'])} messages"
        if __task__:
            return "{}"
        user = Users.get_user_by_id(__user__["id"])
        same = await Users.get_user_by_id(__user__["id"])
        assert user.id == same.id == UserModel(**__user__).id
        form = {"model": "completion_dict", "messages": body["messages"], "stream": False}
        response = await generate_chat_completion(__request__, form, user)
        form["stream"] = True
        streamed = await generate_chat_completion(__request__, form, user)
        frames = [frame async for frame in streamed.body_iterator]
        return f"{response['choices'][0]['message']['content']} and {len(frames) > 1}"
