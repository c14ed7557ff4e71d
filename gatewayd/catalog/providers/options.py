"""Options of a provider beside its address and key: further keys, headers, and the protocol of its models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from gatewayd.errors import GatewayError, invalid, shorten

MASK: Final = "********"
"""Replacement for a key or the value of a header in replies; in a request it keeps the stored one."""

MAX_KEYS: Final = 100
"""Maximum number of further keys of a provider."""

MAX_OPTION_ENTRIES: Final = 10_000
MAX_OPTION_CHARACTERS: Final = 4096
"""Maximum number of entries of an object of options, and of characters of a text in it."""

PROTOCOLS: Final = ("", "chat", "responses", "responses_with_tools")
"""Protocols in which models of the OpenAI protocol are reached; "" follows the family of each model."""

API_TYPES: Final = {"": "", "chat": "chat", "chat_completions": "chat", "responses": "responses"}
"""The same in the words of Open WebUI."""

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """The options; None is one that a provider has not, or that a form leaves as it is.

    `keys` are used in turn with the key of the provider. `headers` go with every request. `families` has
    canonical names of models by the provider's own ids.
    """

    keys: tuple[str, ...] | None = field(default=None, repr=False)
    headers: Pairs | None = field(default=None, repr=False)
    api_version: str | None = None
    upstream: str | None = None
    families: Pairs | None = None

    @property
    def has_masks(self) -> bool:
        """Whether a stored secret is to be kept."""
        return MASK in (self.keys or ()) or any(value == MASK for _, value in self.headers or ())

    def completed(self, held: "ConnectionOptions") -> Self:
        """Return the options with those of `held` for what is None or masked; raises invalid_request."""
        stored = dict(held.headers or ())
        keys = held.keys if self.keys is None else _unmasked_keys(self.keys, held.keys or ())
        headers = held.headers
        if self.headers is not None:
            headers = tuple((name, _unmasked(name, value, stored)) for name, value in self.headers)
        return type(self)(
            keys or None,
            headers or None,
            (held.api_version if self.api_version is None else self.api_version) or None,
            (held.upstream if self.upstream is None else self.upstream) or None,
            (held.families if self.families is None else self.families) or None,
        )


NO_OPTIONS: Final = ConnectionOptions()


def read_options(options: Mapping[str, Any]) -> ConnectionOptions:
    """Return the options of an entry of a form; raises invalid_request that names the field."""
    upstream = options.get("upstream")
    if upstream is None and options.get("api_type") is not None:
        upstream = API_TYPES.get(str(options["api_type"]))
        if upstream is None:
            raise _refused("api_type", "expected chat_completions or responses")
    if upstream is not None and upstream not in PROTOCOLS:
        raise _refused("upstream", f"expected {', '.join(filter(None, PROTOCOLS))}")
    version = options.get("api_version")
    if version is not None and not _is_line(version, 64):
        raise _refused("api_version", "expected a printable text of at most 64 characters")
    keys = options.get("keys")
    if keys is not None:
        _check_keys(keys)
    return ConnectionOptions(
        None if keys is None else tuple(keys),
        _pairs(options, "headers"),
        None if version is None else version.strip(),
        upstream,
        _pairs(options, "families"),
    )


def render_options(options: ConnectionOptions) -> dict[str, Any]:
    """Return the options with masks in place of their secrets."""
    return {
        "keys": [MASK] * len(options.keys or ()),
        "headers": {name: MASK for name, _ in options.headers or ()},
        "api_version": options.api_version or "",
        "upstream": options.upstream or "",
        "families": dict(options.families or ()),
    }


def _check_keys(keys: object) -> None:
    if not isinstance(keys, list) or len(keys) > MAX_KEYS:
        raise _refused("keys", f"expected a list of at most {MAX_KEYS} keys")
    if not all(_is_line(key, MAX_OPTION_CHARACTERS) and key for key in keys):
        raise _refused("keys", f"expected printable texts of 1 to {MAX_OPTION_CHARACTERS} characters")


def _pairs(options: Mapping[str, Any], name: str) -> Pairs | None:
    value = options.get(name)
    if value is None:
        return None
    if not isinstance(value, dict) or len(value) > MAX_OPTION_ENTRIES:
        raise _refused(name, f"expected an object of at most {MAX_OPTION_ENTRIES} members")
    if not all(_is_line(text, MAX_OPTION_CHARACTERS) for pair in value.items() for text in pair):
        raise _refused(name, f"expected printable texts of at most {MAX_OPTION_CHARACTERS} characters")
    return tuple(value.items())


def _unmasked_keys(keys: Sequence[str], held: Sequence[str]) -> tuple[str, ...]:
    """Return the keys with the stored one at the place of each mask."""
    found = []
    for place, key in enumerate(keys):
        if key == MASK and place >= len(held):
            raise _refused("keys", f"no key is stored for place {place}")
        found.append(held[place] if key == MASK else key)
    return tuple(found)


def _unmasked(name: str, value: str, held: Mapping[str, str]) -> str:
    if value != MASK:
        return value
    if name not in held:
        raise _refused("headers", f"no value of {shorten(name)} is stored")
    return held[name]


def _is_line(value: object, longest: int) -> bool:
    return isinstance(value, str) and len(value) <= longest and value.isprintable()


def _refused(param: str, reason: str) -> GatewayError:
    return invalid(f"cannot accept {param}: {reason}", param=param)
