"""
title: Old names
author: gateway tests
version: 0.1
description: Written for the first releases, whose modules stood at the top.
"""

from apps.webui.models.users import Users
from config import DATA_DIR
from utils.misc import get_last_user_message, pop_system_message


class Pipe:
    def pipe(self, body: dict, __user__: dict) -> str:
        system, messages = pop_system_message(body["messages"])
        found = Users.get_user_by_id(__user__["id"])
        return f"{get_last_user_message(messages)} {system['content']} {found.email} {bool(str(DATA_DIR))}"
