"""Descriptions of the settings, for messages, the sample file and gatewayd.toml(5)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, get_args

from annotated_types import Ge, Gt, Le, MaxLen, MinLen
from pydantic import BaseModel, ByteSize, SecretStr
from pydantic.fields import FieldInfo

from gatewayd.settings.fields import CATEGORIES
from gatewayd.settings.model_prices import ModelPriceTable
from gatewayd.settings.oauth import OAuthProvider
from gatewayd.settings.provider_rules import ProviderRule
from gatewayd.settings.providers import Provider
from gatewayd.settings.settings_model import Settings
from gatewayd.settings.types import ExpectedValue

PREFIX: Final = "GATEWAYD_"
FILE_SUFFIX: Final = "_FILE"
# Names that other programs use too: `ENV_FILE` without the prefix is rarely meant for this daemon.
_COMMON: Final = frozenset({"ENV", "HOST", "PORT"})
TABLES: Final[Mapping[str, type[BaseModel]]] = MappingProxyType(
    {
        "providers": Provider,
        "provider_rules": ProviderRule,
        "model_prices": ModelPriceTable,
        "oauth_providers": OAuthProvider,
    }
)
"""The settings that are a list of tables, with the model of one table; only files can set them."""

TABLE_SECRETS: Final = MappingProxyType(
    {"providers": "key", "provider_rules": "", "model_prices": "", "oauth_providers": "client_secret"}
)
"""The key of each table with a secret, which `KEY_file` or `KEY_credential` may replace; "" for none."""

FURTHER_SECRETS: Final = ("keys", "headers")
"""Further keys of tables whose values are secret."""

# `SCIM_TOKEN_FILE` is the variable of the setting `scim_token_file`.
_NO_FILE: Final = frozenset({"scim_token"})


@dataclass(frozen=True, slots=True)
class SettingDescription:
    """Description of one setting. `expects` completes "expected ...", `default` is the default as TOML."""

    name: str
    category: str
    description: str
    expects: str
    separator: str
    default: str
    aliases: tuple[str, ...]
    reloadable: bool
    secret: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The setting's own name and its aliases, in lower case."""
        return (self.name, *self.aliases)

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that set it, highest precedence first."""
        if self.name in TABLES:
            return ()
        upper = [name.upper() for name in self.names]
        return (*(PREFIX + name for name in upper), *upper)

    @property
    def file_variables(self) -> tuple[str, ...]:
        """The environment variables that name a file with its value, highest precedence first."""
        if self.name in _NO_FILE:
            return ()
        return tuple(name + FILE_SUFFIX for name in self.variables if name not in _COMMON)

    @property
    def credentials(self) -> tuple[str, ...]:
        """The files in the credentials directory that set it, highest precedence first."""
        if self.name in TABLES:
            return ()
        return tuple(form for name in self.names for form in (name.replace("_", "-"), name))


@cache
def definitions() -> Mapping[str, SettingDescription]:
    """Return every setting by name, in the order of the categories."""
    unordered = [_define(name, field) for name, field in Settings.model_fields.items()]
    ordered = sorted(unordered, key=lambda each: CATEGORIES.index(each.category))
    return MappingProxyType({each.name: each for each in ordered})


@cache
def names_by_alias() -> Mapping[str, str]:
    """Return the setting of each lower-case name, aliases included."""
    return MappingProxyType({name: each.name for each in definitions().values() for name in each.names})


def changed_settings(old: Settings, new: Settings) -> list[str]:
    """Return the names of the settings that differ, in the order of the manual page."""
    return [name for name in definitions() if getattr(old, name) != getattr(new, name)]


def table_fields(table: str) -> Iterator[tuple[str, str, str]]:
    """Return name, expectation and description of each key of a table of `TABLES`."""
    for name, field in TABLES[table].model_fields.items():
        yield name, expectation(field), field.description or ""


def expectation(field: FieldInfo) -> str:
    """Return what a field accepts, bounds included."""
    expect = _expect(field)
    bounds: dict[type, Any] = {type(item): item for item in field.metadata}
    words = [expect.words]
    if Gt in bounds:
        words.append(f"greater than {bounds[Gt].gt}")
    if Ge in bounds and Le in bounds:
        words.append(f"from {bounds[Ge].ge} to {bounds[Le].le}")
    elif Ge in bounds:
        words.append(f"at least {bounds[Ge].ge}")
    elif Le in bounds:
        words.append(f"at most {bounds[Le].le}")
    if MinLen in bounds and MaxLen in bounds:
        words.append(f"{bounds[MinLen].min_length} to {bounds[MaxLen].max_length} characters")
    return ", ".join(words)


def format_toml(value: Any) -> str:
    """Return a default value as TOML."""
    match value:
        case bool():
            return str(value).lower()
        case None:
            return '""'
        case ByteSize():
            return f'"{value.human_readable(separator="")}"'.replace(".0", "")
        case int() | float():
            return f"{value:g}" if isinstance(value, float) else str(value)
        case SecretStr():
            return format_toml(value.get_secret_value())
        case str() | Path():
            return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
        case tuple():
            return f"[{', '.join(map(format_toml, value))}]"
        case _:
            raise TypeError(f"no TOML form for {type(value).__name__}")


def _define(name: str, field: FieldInfo) -> SettingDescription:
    extra: Any = field.json_schema_extra
    return SettingDescription(
        name=name,
        category=extra["category"],
        description=field.description or "",
        expects=expectation(field),
        separator=_expect(field).separator,
        default=format_toml(Settings.model_fields[name].get_default()),
        aliases=tuple(extra["aliases"]),
        reloadable=extra["reloadable"],
        secret=_holds_secret(field.annotation),
    )


def _expect(field: FieldInfo) -> ExpectedValue:
    found = [item for item in field.metadata if isinstance(item, ExpectedValue)]
    if not found:
        raise TypeError(f"no expectation declared for {field.annotation}")
    return found[-1]


def _holds_secret(annotation: Any) -> bool:
    """Return whether a type is a secret, or a list or table that contains one."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return any(_holds_secret(field.annotation) for field in annotation.model_fields.values())
    return annotation is SecretStr or any(_holds_secret(part) for part in get_args(annotation))
