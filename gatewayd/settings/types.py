"""Types of the settings, each with the words for what it accepts.

Text from the environment and typed values from TOML use the same types: a number may be given as text, but
`true` is no number and 1 is no switch.
"""

import json
import re
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, ByteSize, Field, SecretStr

from gatewayd.text import find_header_problem
from gatewayd.urls import split_url

Network = IPv4Network | IPv6Network

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATION: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(ms|[smhdw])")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
MIN_SECRET_BYTES: Final = 32
MAX_SCIM_TOKENS: Final = 2
MAX_PROVIDER_NAME_CHARACTERS: Final = 128


@dataclass(frozen=True, slots=True)
class ExpectedValue:
    """What a type accepts, in words that follow "expected"; `separator` splits a list given as text."""

    words: str
    separator: str = ""


def parse_duration(text: str) -> float:
    """Return the seconds of a duration such as `4w` or `1.5h`; raises ValueError."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"not a duration: {text!r}")
    return float(match[1]) * _UNITS[match[2]]


def _switch(value: Any) -> Any:
    if isinstance(value, bool | str):
        return value
    raise ValueError("not a switch")


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("not a number")
    return value


def _text_or_path(value: Any) -> Any:
    if isinstance(value, str | Path | SecretStr):
        return value
    raise ValueError("not a text")


def _mebibytes(value: Any) -> Any:
    if isinstance(value, ByteSize):
        return value
    text = str(_number(value)).strip()
    return f"{text}MiB" if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text) else value


def _extension(text: str) -> str:
    name = text.strip().removeprefix(".").lower()
    if not re.fullmatch(r"[a-z0-9][a-z0-9_+-]*", name):
        raise ValueError("not an extension")
    return name


def _number_or_none(value: Any) -> Any:
    return None if value == "" else _number(value)


def _lifetime(text: str) -> str:
    if parse_duration(text) < 1:
        raise ValueError("shorter than a second")
    return text


def _url(text: str) -> str:
    parts = split_url(text)
    _ = parts.port  # raises ValueError when it is not a number
    if parts.scheme not in {"http", "https"} or not parts.hostname or not _is_visible(text):
        raise ValueError("not an http address")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ValueError("more than an address")
    return text.rstrip("/")


def _url_or_empty(text: str) -> str:
    return text and _url(text)


# Programs built on a browser have schemes of their own, such as `app://obsidian.md`.
_PROGRAM_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]{0,31}://[A-Za-z0-9._-]{1,253}(?::[0-9]{1,5})?")
_EMBED_HOST: Final = re.compile(r"(?:\*\.)?(?:[A-Za-z0-9-]{1,63}\.)*[A-Za-z0-9-]{1,63}(?::[0-9]{1,5})?")


def _web_origin(text: str) -> str:
    if text == "*" or (_PROGRAM_ORIGIN.fullmatch(text) and not text.startswith(("http:", "https:"))):
        return text
    if split_url(_url(text)).path:
        raise ValueError("an origin has no path")
    return _url(text)


def _numbered_name(text: str) -> str:
    name, _, number = text.rpartition("=")
    if not name or not re.fullmatch(r"[0-9]{1,5}", number) or not int(number):
        raise ValueError("no name with a number")
    return _line(text)


def _embed_host(text: str) -> str:
    if not _EMBED_HOST.fullmatch(text):
        raise ValueError("no host")
    return text.lower()


def _absolute(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError("not absolute")
    return path


def _absolute_or_none(value: Any) -> Any:
    return None if value in ("", None) else _text_or_path(value)


def _socket(path: Path) -> Path:
    if len(str(_absolute(path)).encode()) > 107:
        raise ValueError("too long for a socket")
    return path


def _line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("not printable")
    return text


def _provider_name(text: str) -> str:
    if len(text) > MAX_PROVIDER_NAME_CHARACTERS or text != text.strip():
        raise ValueError("not a name")
    return _line(text)


def _header_name(text: str) -> str:
    if not _HEADER_NAME.fullmatch(text):
        raise ValueError("not a header name")
    return text.lower()


def _header_name_or_empty(text: str) -> str:
    return _header_name(text) if text else ""


def _address_or_empty(text: str) -> str:
    if text and not re.fullmatch(r"[^@\s]+@[^@\s]+", text):
        raise ValueError("not an e-mail address")
    return text


def _database(secret: SecretStr) -> SecretStr:
    url = secret.get_secret_value()
    parts = split_url(url)
    is_sqlite = parts.scheme == "sqlite" and not parts.netloc and bool(re.match("//+[^/]", parts.path))
    is_postgres = parts.scheme in {"postgresql", "postgres"} and bool(parts.hostname or parts.query)
    if url and not (is_sqlite or is_postgres):
        raise ValueError("not a database address")
    return secret


def _provider_key(secret: SecretStr) -> SecretStr:
    if not _is_visible(secret.get_secret_value()):
        raise ValueError("not one word")
    return secret


def _header_value(secret: SecretStr) -> SecretStr:
    problem = find_header_problem([("X-Any", secret.get_secret_value())], has_key=False)
    if problem is not None:
        raise ValueError(problem)
    return secret


def _signing_secret(secret: SecretStr) -> SecretStr:
    value = secret.get_secret_value()
    if value and len(value.encode()) < MIN_SECRET_BYTES:
        raise ValueError("too short")
    return secret


def _scim_words(value: Any) -> Any:
    return value.split() if isinstance(value, str) else value


def _scim_tokens(tokens: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
    given = tuple(token for token in tokens if token.get_secret_value())
    if len(given) > MAX_SCIM_TOKENS:
        raise ValueError("too many tokens")
    return given


def _is_visible(text: str) -> bool:
    return all("!" <= char <= "~" for char in text)


def _upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


def _switch_word(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool | str) else value


def _tool_servers(secret: SecretStr) -> SecretStr:
    try:
        value = json.loads(secret.get_secret_value() or "[]")
    except ValueError as error:
        raise ValueError(f"it is no JSON: {error}") from None
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError("it is no JSON list of objects")
    return secret


class _Split:
    """Splits text at a separator; drops all empty elements or, with `sparse`, only those at the end."""

    def __init__(self, separator: str, *, sparse: bool = False) -> None:
        self._separator = separator
        self._sparse = sparse

    def __call__(self, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        parts = [part.strip() for part in value.split(self._separator)]
        if not self._sparse:
            return [part for part in parts if part]
        while parts and not parts[-1]:
            parts.pop()
        return parts


Switch = Annotated[bool, BeforeValidator(_switch), ExpectedValue("true or false")]
Whole = Annotated[int, BeforeValidator(_number), ExpectedValue("a whole number")]
Size = Annotated[
    ByteSize, BeforeValidator(_number), ExpectedValue('a number of bytes, or text such as "32MiB"')
]
# A bare number counts MiB, as in the configuration of Open WebUI.
Mebibytes = Annotated[
    ByteSize, BeforeValidator(_mebibytes), ExpectedValue('a number of MiB, or text such as "100MiB"')
]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Number = Annotated[Finite, BeforeValidator(_number), ExpectedValue("a number")]
Seconds = Annotated[Finite, BeforeValidator(_number), ExpectedValue("a number of seconds")]
OptionalSeconds = Annotated[
    Finite | None, BeforeValidator(_number_or_none), ExpectedValue('a number of seconds, or "" for no limit')
]
PriceOrNone = Annotated[
    Finite | None, BeforeValidator(_number_or_none), ExpectedValue('a number of US dollars, or ""')
]
OwnSeconds = Annotated[
    Finite | None,
    BeforeValidator(_number_or_none),
    ExpectedValue('a number of seconds, or "" for the general setting'),
]
OwnShare = Annotated[
    Finite | None,
    BeforeValidator(_number_or_none),
    ExpectedValue('a number, or "" for the weight of the embedding model'),
]
Text = Annotated[str, ExpectedValue("text")]
Line = Annotated[str, AfterValidator(_line), ExpectedValue("one line of text")]
ProviderName = Annotated[
    str,
    AfterValidator(_provider_name),
    ExpectedValue(f"a name of at most {MAX_PROVIDER_NAME_CHARACTERS} characters"),
]
Lifetime = Annotated[
    str,
    AfterValidator(_lifetime),
    ExpectedValue('a duration such as "4w" (ms, s, m, h, d, w), at least a second'),
]
Url = Annotated[
    str, AfterValidator(_url), ExpectedValue("an http:// or https:// address without query or password")
]
UrlOrEmpty = Annotated[
    str,
    AfterValidator(_url_or_empty),
    ExpectedValue('an http:// or https:// address without query or password, or ""'),
]
MailOrEmpty = Annotated[str, AfterValidator(_address_or_empty), ExpectedValue('an e-mail address, or ""')]
HeaderName = Annotated[str, AfterValidator(_header_name), ExpectedValue("the name of an HTTP header")]
HeaderNameOrEmpty = Annotated[
    str, AfterValidator(_header_name_or_empty), ExpectedValue('the name of an HTTP header, or ""')
]
Directory = Annotated[
    Path, BeforeValidator(_text_or_path), AfterValidator(_absolute), ExpectedValue("an absolute path")
]
SocketPath = Annotated[
    Path,
    BeforeValidator(_text_or_path),
    AfterValidator(_socket),
    ExpectedValue("an absolute path of at most 107 bytes"),
]
OptionalSocketPath = Annotated[
    Annotated[Path, AfterValidator(_socket)] | None,
    BeforeValidator(_absolute_or_none),
    ExpectedValue('an absolute path of at most 107 bytes, or ""'),
]
OptionalFile = Annotated[
    Annotated[Path, AfterValidator(_absolute)] | None,
    BeforeValidator(_absolute_or_none),
    ExpectedValue('an absolute path, or ""'),
]
LogLevel = Annotated[
    Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"],
    BeforeValidator(_upper),
    ExpectedValue('"DEBUG", "INFO", "WARNING", "ERROR" or "CRITICAL"'),
]
AutoSwitch = Annotated[
    Literal["auto", "true", "false"], BeforeValidator(_switch_word), ExpectedValue('true, false or "auto"')
]
Isolation = Annotated[
    Literal["thread", "process"], BeforeValidator(_switch_word), ExpectedValue('"thread" or "process"')
]

ProviderKey = Annotated[
    SecretStr, AfterValidator(_provider_key), ExpectedValue("one word of ASCII characters")
]
ProviderKeys = Annotated[tuple[ProviderKey, ...], ExpectedValue("a list of words of ASCII characters")]
HeaderValue = Annotated[
    SecretStr, AfterValidator(_header_value), ExpectedValue("one line of visible ASCII characters")
]
HeaderTable = Annotated[dict[str, HeaderValue], ExpectedValue("a table of names and values of HTTP headers")]
SigningSecret = Annotated[
    SecretStr,
    AfterValidator(_signing_secret),
    ExpectedValue(f'text of at least {MIN_SECRET_BYTES} bytes, or ""'),
]
ToolServers = Annotated[SecretStr, AfterValidator(_tool_servers), ExpectedValue("a JSON list of objects")]
DatabaseUrl = Annotated[
    SecretStr,
    AfterValidator(_database),
    ExpectedValue('sqlite:////ABSOLUTE/PATH, postgresql://USER:PASSWORD@HOST/NAME, or ""'),
]

Paths = Annotated[tuple[str, ...], BeforeValidator(_Split(",")), ExpectedValue("a list of paths", ",")]
Extensions = Annotated[
    tuple[Annotated[str, AfterValidator(_extension)], ...],
    BeforeValidator(_Split(",")),
    ExpectedValue("a list of file name extensions", ","),
]
Texts = Annotated[tuple[Line, ...], BeforeValidator(_Split(",")), ExpectedValue("a list of texts", ",")]
Urls = Annotated[
    tuple[Url, ...], BeforeValidator(_Split(";")), ExpectedValue("a list of http addresses", ";")
]
# An empty element keeps the positions of those after it.
SparseUrls = Annotated[
    tuple[UrlOrEmpty, ...],
    BeforeValidator(_Split(";", sparse=True)),
    ExpectedValue("a list of http addresses", ";"),
]
SparseKeys = Annotated[
    tuple[ProviderKey, ...], BeforeValidator(_Split(";", sparse=True)), ExpectedValue("a list of keys", ";")
]
# Two, so that a new token can be issued before the old one is revoked.
ScimTokens = Annotated[
    tuple[ProviderKey, ...],
    BeforeValidator(_scim_words),
    AfterValidator(_scim_tokens),
    ExpectedValue("a list of at most two words of ASCII characters", " "),
]
WebOrigins = Annotated[
    tuple[Annotated[str, AfterValidator(_web_origin)], ...],
    BeforeValidator(_Split(";")),
    ExpectedValue('a list of origins such as "https://chat.example.org", or "*"', ";"),
]
Networks = Annotated[
    tuple[Network, ...],
    BeforeValidator(_Split(",")),
    ExpectedValue("a list of networks or addresses such as 10.0.0.0/8", ","),
]
NumberedNames = Annotated[
    tuple[Annotated[str, AfterValidator(_numbered_name)], ...],
    BeforeValidator(_Split(",")),
    ExpectedValue('a list of NAME=NUMBER with whole numbers above 0, such as "llama3:8b=2"', ","),
]
EmbedHosts = Annotated[
    tuple[Annotated[str, AfterValidator(_embed_host)], ...],
    BeforeValidator(_Split(",")),
    ExpectedValue('a list of host names, "*." before one for all names below it', ","),
]
