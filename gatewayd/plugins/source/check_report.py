"""Request and report of a source check, exchanged with its process as JSON."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SourceCheckRequest:
    """A source to check; `timeout` in seconds, `packages` an additional import directory.

    With `packages` missing requirements are installed for the check, with `pip_options` and `pip_timeout` in
    seconds. `settings` are the settings that plugins see. `family` None means the family of its class.
    `values` are valves that the plugin must accept, None for no check of them.
    """

    id: str
    content: str
    family: str | None = None
    timeout: float = 60.0
    packages: str | None = None
    pip_options: tuple[str, ...] = ()
    pip_timeout: float = 0.0
    settings: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ReportedParameter:
    """One parameter of a method; `required` is false when it has a default."""

    name: str
    required: bool


@dataclass(frozen=True, slots=True)
class ReportedMethod:
    """A method that the gateway or a model calls."""

    name: str
    parameters: tuple[ReportedParameter, ...] = ()


@dataclass(frozen=True, slots=True)
class MissingImport:
    """A missing import; a `guarded` one is handled by the plugin.

    `requirement` is the requirement of the header for its package, "" without one.
    """

    name: str
    guarded: bool
    requirement: str = ""


@dataclass(frozen=True, slots=True)
class ReportedEvent:
    """A type of event; `known` is false when the gateway only delivers it."""

    type: str
    known: bool


@dataclass(frozen=True, slots=True)
class ReportedRequirement:
    """A requirement of the header, and the installed version, None when not installed."""

    requirement: str
    version: str | None


@dataclass(frozen=True, slots=True)
class SourceCheckReport:
    """Report of a source; `error` is the reason why it does not load, None when it loads.

    `valves` and `user_valves` are JSON schemas, None without valves or when unknown. `problems` are sentences
    about parts that load but will not work. `values_error` is the reason why the plugin refuses the given
    valves, and `values_field` the first faulty one; None when it accepts them.
    """

    id: str
    family: str | None = None
    kind: str | None = None
    name: str = ""
    version: str = ""
    error: str | None = None
    methods: tuple[ReportedMethod, ...] = ()
    missing: tuple[MissingImport, ...] = ()
    events: tuple[ReportedEvent, ...] = ()
    valves: dict[str, Any] | None = None
    user_valves: dict[str, Any] | None = None
    requirements: tuple[ReportedRequirement, ...] = ()
    problems: tuple[str, ...] = ()
    values_error: str | None = None
    values_field: str | None = None

    @property
    def loads(self) -> bool:
        """Whether the source loads."""
        return self.error is None
