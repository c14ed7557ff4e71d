"""Scope of a call: the values of its reserved parameters."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gatewayd.accounts.records import Actor
from gatewayd.events.records import EventTarget
from gatewayd.metering.records import MeteredCall


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """The HTTP request of a call; `base_url` has the scheme and host that the client used."""

    method: str = "POST"
    path: str = "/"
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    client: str = ""
    base_url: str = "http://localhost"
    request_id: str = ""


FactsReader = Callable[[], RequestFacts]
"""Returns the facts on demand; most requests never need them."""


@dataclass(slots=True)
class CallScope:
    """Values of the reserved parameters of one call.

    `metadata` is the one object that filters see as `body["metadata"]` and every kind as `__metadata__`.
    `model` has the format of the model list. `tools` are the tools of `__tools__`, by name. `task` names the
    task (`title_generation`, ...) and is None for a chat; `task_body` is its original request. `level` is
    the number of enclosing plugin requests. `filtered` are the ids of the filters that have run on the
    request; they do not run again on the requests of plugins within it. `oauth_token` is found when a plugin
    first asks for it. `call` meters the call of a function model: it is told of the calls within it.
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
    oauth_token: dict[str, Any] | None = field(default=None, repr=False)
    call: MeteredCall | None = field(default=None, repr=False)
