"""What a plugin may know about the call that it serves."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gatewayd.accounts.records import Actor
from gatewayd.events.records import EventTarget


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """The HTTP request behind a call; `base_url` is scheme and host as the client sees them."""

    method: str = "POST"
    path: str = "/"
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    client: str = ""
    base_url: str = "http://localhost"
    request_id: str = ""


FactsReader = Callable[[], RequestFacts]
"""Tells the facts once somebody asks: most requests are answered without."""


@dataclass(slots=True)
class CallScope:
    """Everything behind the reserved parameters of one call.

    `metadata` is the one object that filters see as `body["metadata"]` and every kind as `__metadata__`.
    `model` is the model as listings show it. `tools` are those of `__tools__`, by name. `task` names the
    internal call (`title_generation`, ...) and is None for a chat, `task_body` is its original request.
    `level` is how many requests of plugins the call is part of. `filtered` are the ids of the filters that
    have had a part in the request, which the requests of plugins within it do not meet again.
    """

    actor: Actor
    target: EventTarget
    facts: RequestFacts = field(default_factory=RequestFacts)
    metadata: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] | None = None
    files: list[Any] | None = None
    messages: list[Any] | None = None
    tools: dict[str, Any] = field(default_factory=dict)
    task: str | None = None
    task_body: dict[str, Any] | None = None
    level: int = 0
    filtered: set[str] = field(default_factory=set)
