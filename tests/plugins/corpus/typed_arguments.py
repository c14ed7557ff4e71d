"""
title: Typed arguments
author: gateway tests
version: 0.1
description: Every kind of annotation.
"""

from typing import Dict, List, Literal, Optional, Union

from pydantic import BaseModel, Field


class Place(BaseModel):
    city: str = Field(..., description="The town.")
    country: Optional[str] = None


class Tools:
    async def weather(
        self,
        place: Place,
        unit: Literal["celsius", "fahrenheit"] = "celsius",
        days: Optional[int] = None,
        tags: List[str] = [],
        limits: Dict[str, float] = {},
        when: Union[int, str] = 0,
        exact: bool = False,
        __user__: dict = {},
        __event_emitter__=None,
    ) -> dict:
        """
        Tell the weather of a place.

        :param place: Where.
        :param unit: The unit of the temperature.
        """
        await __event_emitter__(
            {"type": "status", "data": {"description": "looking at the sky", "done": True}}
        )
        return {"place": place, "unit": unit, "days": days, "tags": tags, "limits": limits, "when": when}
