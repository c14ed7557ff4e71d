"""What is asked, what came back, and what that means."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Memory = dict[str, str]
"""What earlier steps found out, for example the id of a user."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One request below the base address; `token` None sends none, "" sends the given one."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    token: str | None = ""


@dataclass(frozen=True, slots=True)
class ScimAnswer:
    """What came back; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON, None when it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @property
    def resource(self) -> Mapping[str, Any]:
        """The body as an object, empty when it is none."""
        value = self.json
        return value if isinstance(value, dict) else {}

    @property
    def is_html(self) -> bool:
        """Whether it is a page for people."""
        kind = self.headers.get("content-type", "").lower()
        return "html" in kind or self.body.lstrip()[:1] == b"<"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a step failed, and what to do about it."""

    detail: str
    advice: str = ""


class Unanswered(Exception):  # noqa: N818 - not an error of ours
    """There was no answer at all; nothing else can be tried."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.detail)
        self.fault = fault


class Result(StrEnum):
    """How a step ended."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what is asked, and what a good answer is.

    `judge` returns a sentence about a good answer, or a fault. `needs` names what earlier steps must have put
    into the memory; without it the step is skipped.
    """

    name: str
    ask: Callable[[Memory], Ask]
    judge: Callable[[ScimAnswer, Memory], str | Fault]
    needs: tuple[str, ...] = ()
