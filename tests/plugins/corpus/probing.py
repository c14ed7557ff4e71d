"""
title: Probing
author: gateway tests
version: 0.1
description: Looks what its host has, and does without the rest.
"""

from open_webui.models.channels_of_tomorrow import Channels

try:
    from open_webui.models.skills_of_tomorrow import Skills
except ImportError:
    Skills = None

try:
    import package_that_nobody_has
except ImportError as e:
    print(f"optional package is missing: {e}")
    package_that_nobody_has = None


class Pipe:
    async def pipe(self, body: dict, __user__: dict) -> str:
        if body["messages"][-1]["content"] == "use":
            return Channels.get_channels()
        from open_webui.models.users import Users

        try:
            from open_webui.utils.nothing import anything
        except ImportError:
            anything = None
        user = await Users.get_user_by_id(__user__["id"])
        return f"{user.role} {Skills} {package_that_nobody_has} {anything}"
