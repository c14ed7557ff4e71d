"""Selection of files: patterns as in gitignore(5), from the command line and from files."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pathspec import GitIgnoreSpec

from gatewayctl.prompts import usage

# In the order in which they are read; later patterns take precedence.
IGNORE_FILES: Final = (".gitignore", ".gatewayignore")
# Directories of version control and of the file system contain no documents.
STORES: Final = frozenset({".git", ".hg", ".svn", ".bzr", "lost+found"})


@dataclass(frozen=True, slots=True)
class Rules:
    """The patterns in force in one directory.

    `given` and `only` come from the command line, `found` from files: the depth of the directory of each file
    and its patterns, the deepest last.
    """

    given: GitIgnoreSpec
    only: GitIgnoreSpec | None = None
    hidden: bool = False
    found: tuple[tuple[int, GitIgnoreSpec], ...] = ()

    @classmethod
    def of(cls, ignore: Sequence[str] = (), include: Sequence[str] = (), *, hidden: bool = False) -> "Rules":
        """Return the rules of the command line; raises usage that names an invalid pattern."""
        return cls(
            _given(ignore, "--ignore"), _given(include, "--include") if include else None, hidden=hidden
        )

    def entering(self, depth: int, text: str) -> "Rules":
        """Return the rules for a directory with a file of patterns; invalid lines match nothing."""
        lines = [
            line for line in text.replace("\r\n", "\n").split("\n") if line and _compiled([line]) is not None
        ]
        spec = _compiled(lines)
        return replace(self, found=(*self.found, (depth, spec))) if spec is not None and lines else self

    def takes_folder(self, parts: Sequence[str]) -> bool:
        """Return whether a directory is entered."""
        if parts[-1] in STORES or self._is_hidden(parts[-1]):
            return False
        return not self._is_ignored(parts, "/")

    def takes_file(self, parts: Sequence[str]) -> bool:
        """Return whether a file is ingested."""
        if self._is_hidden(parts[-1]) or self._is_ignored(parts, ""):
            return False
        return self.only is None or self.only.check_file("/".join(parts)).include is True

    def _is_hidden(self, name: str) -> bool:
        return name in IGNORE_FILES or (name.startswith(".") and not self.hidden)

    def _is_ignored(self, parts: Sequence[str], end: str) -> bool:
        """Check the patterns, highest precedence first; the first that matches the path decides."""
        for depth, spec in ((0, self.given), *reversed(self.found)):
            verdict = spec.check_file("/".join(parts[depth:]) + end).include
            if verdict is not None:
                return verdict
        return False


def _given(patterns: Sequence[str], option: str) -> GitIgnoreSpec:
    for pattern in patterns:
        if _compiled([pattern]) is None:
            raise usage(f"cannot read {option} {pattern!r}: it is no pattern", param=option)
    return GitIgnoreSpec.from_lines(patterns)


def _compiled(lines: Iterable[str]) -> GitIgnoreSpec | None:
    with warnings.catch_warnings():
        # A warning about brackets that a later Python may interpret in another way.
        warnings.simplefilter("ignore", FutureWarning)
        try:
            return GitIgnoreSpec.from_lines(lines)
        except ValueError:
            return None
