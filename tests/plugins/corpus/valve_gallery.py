"""
title: Gallery of valves
author: gateway tests
version: 1.0
description: Every kind of setting that authors use.
"""

import base64
import hashlib
import os
from typing import Any, List, Literal, Optional

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    field_validator,
    model_validator,
    validator,
)
from pydantic_core import core_schema


class EncryptedStr(str):
    """A text that is kept scrambled."""

    PREFIX = "sealed:"

    @classmethod
    def _key(cls) -> bytes:
        return hashlib.sha256(os.getenv("WEBUI_SECRET_KEY", "no secret").encode()).digest()

    @classmethod
    def seal(cls, value: str) -> str:
        if not value or value.startswith(cls.PREFIX):
            return value
        mixed = bytes(one ^ key for one, key in zip(value.encode(), cls._key() * 8))
        return cls.PREFIX + base64.b64encode(mixed).decode()

    @classmethod
    def open(cls, value: str) -> str:
        if not value.startswith(cls.PREFIX):
            return value
        mixed = base64.b64decode(value[len(cls.PREFIX) :])
        return bytes(one ^ key for one, key in zip(mixed, cls._key() * 8)).decode()

    @classmethod
    def __get_pydantic_core_schema__(
        cls, _source: Any, _handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.union_schema(
            [
                core_schema.is_instance_schema(cls),
                core_schema.chain_schema(
                    [
                        core_schema.str_schema(),
                        core_schema.no_info_plain_validator_function(lambda value: cls(cls.seal(value))),
                    ]
                ),
            ],
            serialization=core_schema.plain_serializer_function_ser_schema(str),
        )


class BaseValves(BaseModel):
    """What all plugins of this author have."""

    debug: bool = False


class Pipe:
    class Valves(BaseValves):
        model_config = ConfigDict(str_strip_whitespace=True)

        MODE: Literal["fast", "good"] = Field(default="fast", title="Mode", description="How to work.")
        API_KEY: EncryptedStr = Field(
            default="", description="The key.", json_schema_extra={"input": {"type": "password"}}
        )
        TOP_K: int = Field(default=3, ge=1, le=10)
        TEMPERATURE: float = 0.5
        NOTE: Optional[str] = None
        HOSTS: List[str] = Field(default_factory=lambda: ["a", "b"])
        REGION: str = Field(
            default="west", json_schema_extra={"input": {"type": "select", "options": "region_options"}}
        )
        COLOUR: str = Field(default="red", json_schema_extra={"enum": ["red", "blue"]})
        LANGUAGE: str = "EN"
        LOWEST: int = 1
        HIGHEST: int = 5

        @classmethod
        def region_options(cls, __user__=None) -> list[dict]:
            return [
                {"value": "west", "label": f"West of {(__user__ or {}).get('name')}"},
                {"value": "east", "label": "East"},
            ]

        @field_validator("MODE", mode="before")
        @classmethod
        def lower(cls, value):
            return value.lower() if isinstance(value, str) else value

        @validator("LANGUAGE")
        def upper(cls, value):
            return value.upper()

        @model_validator(mode="after")
        def ordered(self):
            if self.LOWEST > self.HIGHEST:
                raise ValueError("LOWEST must not be over HIGHEST")
            return self

    def __init__(self):
        self.valves = self.Valves()

    async def pipe(self, body: dict) -> dict:
        valves = self.valves.model_dump()
        valves["API_KEY"] = EncryptedStr.open(self.valves.API_KEY)
        message = {"role": "assistant", "content": repr(sorted(valves.items()))}
        return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
