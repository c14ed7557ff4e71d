"""Records of the SCIM check: requests, answers, faults, results and steps."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Memory = dict[str, str]
"""Values that earlier steps found, for example the id of a user."""


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
    """One answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON, None if it is no JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @property
    def resource(self) -> Mapping[str, Any]:
        """The body as an object, empty if it is no object."""
        value = self.json
        return value if isinstance(value, dict) else {}

    @property
    def is_html(self) -> bool:
        """Whether the body is an HTML page."""
        kind = self.headers.get("content-type", "").lower()
        return "html" in kind or self.body.lstrip()[:1] == b"<"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a step failed, with advice."""

    detail: str
    advice: str = ""


class Unanswered(Exception):  # noqa: N818 - not an error of ours
    """There was no answer, so that no further step can run."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.detail)
        self.fault = fault


class Result(StrEnum):
    """Result of a step."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its request and the judge of the answer.

    `judge` returns a sentence for a good answer, or a fault. `needs` names values of earlier steps in the
    memory; without them the step is skipped.
    """

    name: str
    ask: Callable[[Memory], Ask]
    judge: Callable[[ScimAnswer, Memory], str | Fault]
    needs: tuple[str, ...] = ()
