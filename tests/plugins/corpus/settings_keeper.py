"""
title: Settings keeper
author: gateway tests
version: 0.1
description: Sets the valves of other functions, as authors do who have many.
"""

from open_webui.models.functions import Functions


class Action:
    async def action(self, body: dict, __user__: dict):
        function, values = body["function"], body["values"]
        if body.get("personal"):
            Functions.update_user_valves_by_id_and_user_id(function, __user__["id"], values)
            return Functions.get_user_valves_by_id_and_user_id(function, __user__["id"])
        await Functions.update_function_valves_by_id(function, values)
        return await Functions.get_function_valves_by_id(function)
