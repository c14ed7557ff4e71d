"""Redaction of text for the log: removes secrets and escapes control characters."""

import re
from collections.abc import Mapping

REDACTED = "[redacted]"

_SENSITIVE_NAMES = frozenset(
    {"authorization", "proxy_authorization", "cookie", "set_cookie", "password", "passwd", "secret", "token"}
    | {"credential", "credentials", "key", "key_value", "api_key", "apikey", "x_api_key", "jwt", "body"}
)
_SENSITIVE_ENDINGS = ("_password", "_secret", "_token", "_api_key", "_secret_key", "_authorization")

_PATTERNS = (
    # An API key after a word boundary or a percent escape; a long one also within a word.
    (re.compile(r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{2}))sk-[A-Za-z0-9_-]{6,}"), "sk-" + REDACTED),
    (re.compile(r"sk-[A-Za-z0-9]{20,}"), "sk-" + REDACTED),
    # A JSON Web Token, also a truncated one: each begins with the base64 of '{"'.
    (re.compile(r"eyJ[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*){0,4}"), REDACTED),
    (re.compile(r"\b(bearer|basic)((?:\s|%20|\\x20)+)[^\s\"',;]+", re.IGNORECASE), rf"\1\2{REDACTED}"),
    (
        re.compile(
            r"\b((?:proxy-)?authorization|x-api-key|(?:set-)?cookie)([\"']?\s*[:=]\s*[\"']?)"
            r"(?!bearer\b|basic\b)[^\s\"',]+",
            re.IGNORECASE,
        ),
        rf"\1\2{REDACTED}",
    ),
    (
        re.compile(
            r"\b(api[_-]?key|(?:access_|refresh_|id_)?token|password|passwd|secret|key)=[^\s\"'&,;]+",
            re.IGNORECASE,
        ),
        rf"\1={REDACTED}",
    ),
    # The password of a URL: scheme://user:password@host.
    (re.compile(r"(://[^\s/:@]*:)[^\s/@]+(?=@)"), rf"\1{REDACTED}"),
)

CONTROLS = (
    "\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff"
)
"""Characters to escape, as ranges for a regular expression.

Control characters (C0, C1, line ends), format characters that are invisible or change the direction of text
(UAX 9, UTS 39), and surrogates.
"""

_CONTROL = re.compile(f"[{CONTROLS}]")
MAX_LATIN_CODE_POINT = 0xFF
MAX_BASIC_CODE_POINT = 0xFFFF

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def redact(text: str) -> str:
    """Return `text` without API keys, bearer and JSON Web Tokens, cookies and passwords."""
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def is_sensitive(name: str) -> bool:
    """Return whether the value of a field named `name` is never logged."""
    plain = name.lower().replace("-", "_")
    return plain in _SENSITIVE_NAMES or plain.endswith(_SENSITIVE_ENDINGS)


def redact_value(name: str, value: object) -> object:
    """Return the value of a log field without secrets; containers are redacted inside, others become text."""
    if is_sensitive(name) and value is not None:
        return REDACTED
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): redact_value(str(key), inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redact_value("", inner) for inner in value]
    return redact(str(value))


def escape(text: str) -> str:
    """Return `text` on one line: control, invisible, direction and surrogate characters as escapes."""
    return _CONTROL.sub(_escaped, text)


def quote(text: str) -> str:
    """Return `text` in double quotes, on one line, so that it can be parsed back exactly.

    A quote and a backslash have a backslash before them; the characters of `escape` become `\\n`, `\\r`,
    `\\t`, `\\xhh`, `\\uhhhh` or `\\Uhhhhhhhh`.
    """
    return '"' + escape(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _escaped(found: re.Match[str]) -> str:
    character = found.group()
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    if code > MAX_BASIC_CODE_POINT:
        return f"\\U{code:08x}"
    return f"\\u{code:04x}" if code > MAX_LATIN_CODE_POINT else f"\\x{code:02x}"
