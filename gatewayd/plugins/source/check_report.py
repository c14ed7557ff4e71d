"""What a look at the source of a plugin found, as it travels from the process that looked."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SourceCheckRequest:
    """What is to be looked at, and how: `timeout` in seconds, `packages` a directory to import from, too.

    With `packages` those that are missing are installed for the look, with `pip_options` and `pip_timeout` in
    seconds. `settings` are what the import names of plugins show as settings. Without `family` the class
    tells it.
    """

    id: str
    content: str
    family: str | None = None
    timeout: float = 60.0
    packages: str | None = None
    pip_options: tuple[str, ...] = ()
    pip_timeout: float = 0.0
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReportedParameter:
    """One parameter of a method; one that is not required may be left out."""

    name: str
    required: bool


@dataclass(frozen=True, slots=True)
class ReportedMethod:
    """A method that the gateway or a model calls."""

    name: str
    parameters: tuple[ReportedParameter, ...] = ()


@dataclass(frozen=True, slots=True)
class MissingImport:
    """An import that finds nothing; the plugin itself is prepared for it where it is guarded.

    `requirement` is the line of the header that names its package, "" without one.
    """

    name: str
    guarded: bool
    requirement: str = ""


@dataclass(frozen=True, slots=True)
class ReportedEvent:
    """A type of event; `known` tells whether the gateway does more than deliver it."""

    type: str
    known: bool


@dataclass(frozen=True, slots=True)
class ReportedRequirement:
    """A package that the header names, and its version where it is installed."""

    requirement: str
    version: str | None


@dataclass(frozen=True, slots=True)
class SourceCheckReport:
    """Everything that is known of a source; `error` says why it does not load.

    `valves` and `user_valves` are JSON schemas, None where there is nothing to set or where that is unknown.
    `problems` are sentences about what loads, but will not work.
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

    @property
    def loads(self) -> bool:
        """Whether it could be installed."""
        return self.error is None
