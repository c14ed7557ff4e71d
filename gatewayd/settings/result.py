"""The result of reading the configuration: its layers, all problems at once, and warnings."""

import difflib
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError, system_reason
from gatewayd.settings.definitions import definitions
from gatewayd.settings.layers import SettingEntry, SettingLayer, SettingOrigin

MAX_FILE_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class ConfigurationProblem:
    """One problem of the configuration.

    `sentence` states the value found and the value expected, and never holds a secret. `file` and `line` are
    None for values outside of files; `key` is the setting as it is spelled there, "" for a whole file.
    """

    key: str
    sentence: str
    file: Path | None = None
    line: int | None = None

    def __str__(self) -> str:
        """Return `file:line: sentence`, without the parts that are not known."""
        if self.file is None:
            return self.sentence
        place = f"{self.file}:{self.line}" if self.line else str(self.file)
        return f"{place}: {self.sentence}"


class ConfigurationError(GatewayError):
    """The configuration cannot be used; `problems` has at least one element."""

    def __init__(self, problems: Sequence[ConfigurationProblem]) -> None:
        self.problems = tuple(problems)
        lines = "; ".join(map(str, self.problems))
        super().__init__(ErrorKind.NOT_CONFIGURED, f"cannot use the configuration: {lines}")


def problem_at(origin: SettingOrigin, key: str, sentence: str) -> ConfigurationProblem:
    """Return the problem of a value from `origin`."""
    return ConfigurationProblem(key, sentence, origin.file, origin.line)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ", did you mean NAME?" for the nearest known name, or "" when none is near."""
    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.7)
    return f", did you mean {near[0]}?" if near else ""


@dataclass(slots=True)
class SettingsReading:
    """Collects layers (lowest first), problems and warnings, so that one run reports everything."""

    layers: list[SettingLayer] = field(default_factory=list)
    problems: list[ConfigurationProblem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add(self, entries: Mapping[str, SettingEntry]) -> None:
        """Add a layer on top of the others."""
        self.layers.append(SettingLayer(entries))

    def refuse(self, origin: SettingOrigin, key: str, sentence: str) -> None:
        """Add a problem."""
        self.problems.append(problem_at(origin, key, sentence))

    def value_file(self, name: str, path: Path, origin: SettingOrigin, key: str) -> SettingEntry | None:
        """Return the value of setting `name` from a file; None after adding a problem."""
        try:
            value = read_value(path)
        except ValueError as error:
            self.refuse(origin, key, f"cannot read {path} for {name}: {error}")
            return None
        if definitions()[name].secret:
            self.warn_if_exposed(path)
        return SettingEntry(value, key, origin)

    def warn_if_exposed(self, path: Path) -> None:
        """Add one warning if all users of the system may read a file that holds a secret."""
        warning = exposure_warning(path)
        if warning and warning not in self.warnings:
            self.warnings.append(warning)


def read_value(path: Path) -> str:
    """Return the text of a small file without its final line ends.

    Raises ValueError with a text that completes "cannot read FILE: ...".
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ValueError(system_reason(error)) from error
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"it has more than {MAX_FILE_BYTES} bytes")
    try:
        return content.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8 text") from error


def exposure_warning(path: Path) -> str:
    """Return a warning if users other than the owner and the group may read the file, else ""."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return f"cannot tell who may read {path}: {error.strerror}"
    if mode & stat.S_IROTH:
        return (
            f"{path} holds a secret and everybody may read it (mode {stat.S_IMODE(mode):04o}, should be 0640)"
        )
    return ""
