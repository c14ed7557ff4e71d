"""Settings from TOML files: the configuration file and its drop-ins."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gatewayd.settings.definitions import FURTHER_SECRETS, TABLE_SECRETS, TABLES, definitions, names_by_alias
from gatewayd.settings.environment import CREDENTIALS
from gatewayd.settings.layers import KeyPath, SettingEntry, SettingOrigin, from_file
from gatewayd.settings.result import SettingsReading, did_you_mean, read_value
from gatewayd.settings.toml_lines import locate_keys

DEFAULT_FILE: Final = Path("/etc/gatewayd/gatewayd.toml")
DROP_INS: Final = "conf.d"

_POSITION: Final = re.compile(r" \(at line (\d+), column \d+\)$")
# Replacements for messages of the parser that do not name what it expected.
_PLAIN_MESSAGES: Final = {
    "Invalid value": "expected a value: text in quotes, a number, true, false or a list",
    "Cannot overwrite a value": "expected each key only once",
}
_END: Final = re.compile(r" \(at end of document\)$")


@dataclass(frozen=True, slots=True)
class _Document:
    path: Path
    values: Mapping[str, Any]
    lines: Mapping[KeyPath, int]

    def origin(self, place: KeyPath) -> SettingOrigin:
        """Return the origin of the nearest enclosing key or element."""
        while place and place not in self.lines:
            place = place[:-1]
        return from_file(self.path, self.lines.get(place))


def read_files(
    file: Path | None, default_file: Path | None, environ: Mapping[str, str], reading: SettingsReading
) -> None:
    """Add a layer for the file and one for each drop-in beside it, in the order of their names."""
    main = file or default_file
    if main is None:
        return
    wanted = [main] if file is not None or main.exists() else []
    for path in (*wanted, *sorted(main.parent.joinpath(DROP_INS).glob("*.toml"))):
        document = _read(path, reading)
        if document is not None:
            reading.add(dict(_entries(document, environ.get(CREDENTIALS), reading)))


def _read(path: Path, reading: SettingsReading) -> _Document | None:
    try:
        content = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or "").lower()
        hint = "; give it to the group of the daemon's user" if isinstance(error, PermissionError) else ""
        reading.refuse(from_file(path, None), "", f"cannot read the file: {reason}{hint}")
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        reading.refuse(from_file(path, line), "", "cannot read the line: expected UTF-8 text")
        return None
    try:
        return _Document(path, tomllib.loads(text), locate_keys(text))
    except tomllib.TOMLDecodeError as error:
        line, sentence = _syntax(str(error), text)
        reading.refuse(from_file(path, line), "", f"cannot read the line as TOML: {sentence}")
        return None


def _syntax(message: str, text: str) -> tuple[int, str]:
    """Return the line number and the sentence of a message of the parser."""
    position = _POSITION.search(message)
    line = int(position.group(1)) if position else text.rstrip().count("\n") + 1
    bare = _END.sub("", _POSITION.sub("", message))
    sentence = _PLAIN_MESSAGES.get(bare, bare[:1].lower() + bare[1:])
    return line, sentence if position else f"{sentence}, at the end of the file"


def _entries(
    document: _Document, credentials: str | None, reading: SettingsReading
) -> Iterator[tuple[str, SettingEntry]]:
    known = names_by_alias()
    spelled: dict[str, str] = {}
    for key, value in document.values.items():
        origin = document.origin((key,))
        if key not in known:
            reading.refuse(origin, key, f"unknown setting {key}{_hint(key, known)}")
            continue
        name = known[key]
        if name in spelled:
            reading.refuse(
                origin,
                key,
                f"cannot use {key}: the file sets {spelled[name]}, another name of the same setting",
            )
            continue
        spelled[name] = key
        if _holds_secret(name, value):
            reading.warn_if_exposed(document.path)
        if name in TABLES:
            value = _with_secrets(name, value, document, credentials, reading)
        yield name, SettingEntry(value, key, origin, document.origin)


def _holds_secret(name: str, value: Any) -> bool:
    """Return whether a value in a file contains a secret."""
    if name in TABLES and isinstance(value, list):
        secrets = {TABLE_SECRETS[name], *FURTHER_SECRETS}
        return any(isinstance(table, dict) and not secrets.isdisjoint(table) for table in value)
    if name == "database_url":
        return isinstance(value, str) and "@" in value
    return definitions()[name].secret and bool(value) and name not in TABLES


def _hint(key: str, known: Mapping[str, str]) -> str:
    if key.lower() in known:
        return f", did you mean {key.lower()}?"
    return did_you_mean(key, known)


def _with_secrets(
    name: str, value: Any, document: _Document, credentials: str | None, reading: SettingsReading
) -> Any:
    if not isinstance(value, list):
        return value
    return [
        _with_secret(table, _SecretPlace(document, (name, index), credentials), reading)
        if isinstance(table, dict)
        else table
        for index, table in enumerate(value)
    ]


@dataclass(frozen=True, slots=True)
class _SecretPlace:
    document: _Document
    place: KeyPath
    credentials: str | None

    def origin(self, key: str) -> SettingOrigin:
        return self.document.origin((*self.place, key))

    def path(self, key: str, text: str) -> Path:
        """Return the file that holds the secret; raises ValueError."""
        if key.endswith("_file"):
            return self.document.path.parent / text
        if not self.credentials:
            raise ValueError(f"there is no credentials directory, {CREDENTIALS} is not set")
        if Path(text).name != text:
            raise ValueError("the name of a credential has no directory")
        return Path(self.credentials, text)


def _with_secret(table: dict[str, Any], place: _SecretPlace, reading: SettingsReading) -> dict[str, Any]:
    """Return the table of a provider with the secret from the file or credential that it names."""
    secret = TABLE_SECRETS[str(place.place[0])]
    given = [key for key in (secret, f"{secret}_file", f"{secret}_credential") if key in table]
    if len(given) > 1:
        sentence = f"cannot use {given[1]}: the provider has {given[0]} already"
        reading.refuse(place.origin(given[1]), _name(place, given[1]), sentence)
        return table
    if given in ([], [secret]) or not isinstance(table[given[0]], str):
        return table
    try:
        path = place.path(given[0], table[given[0]])
        key = read_value(path)
    except ValueError as error:
        sentence = f"cannot read {given[0]} {table[given[0]]!r}: {error}"
        reading.refuse(place.origin(given[0]), _name(place, given[0]), sentence)
        return table
    reading.warn_if_exposed(path)
    return {**table, secret: key}


def _name(place: _SecretPlace, key: str) -> str:
    return f"{place.place[0]}[{place.place[1]}].{key}"
