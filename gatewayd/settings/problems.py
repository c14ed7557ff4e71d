"""What is wrong with a configuration, all of it at once."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.settings.origins import SettingOrigin


@dataclass(frozen=True, slots=True)
class ConfigurationProblem:
    """One thing to repair.

    `sentence` says what was found and what was expected, and never holds a secret. `file` and `line` are None
    for values from elsewhere; `key` is the setting as it was spelled there, "" for a file as a whole.
    """

    key: str
    sentence: str
    file: Path | None = None
    line: int | None = None

    def __str__(self) -> str:
        """Return `file:line: sentence`, as far as they are known."""
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
    """Return the problem of a value that came from `origin`."""
    return ConfigurationProblem(key, sentence, origin.file, origin.line)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ", did you mean NAME?" for the nearest known name, or "" when none is near."""
    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.7)
    return f", did you mean {near[0]}?" if near else ""
