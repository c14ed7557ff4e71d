"""
title: Postponed annotations
author: gateway tests
version: 0.1
description: Names types that are there for type checkers alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from utils._typing import Body, Event, UserData


class Pipe:
    async def pipe(
        self, body: Body, __user__: UserData, __event_emitter__: Event, user: Unknown = None
    ) -> Answer:
        return f"{__user__['name']} {user}"
