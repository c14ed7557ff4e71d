"""Paths in the directories of a collection; pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from gatewayd.accounts.texts import is_plain
from gatewayd.errors import invalid, not_found, shorten
from gatewayd.knowledge.records import CollectionDirectory
from gatewayd.text import compose_nfc

MAX_PATH_CHARACTERS: Final = 4096
MAX_PATH_LEVELS: Final = 100


def normalise_path(path: str, name: str) -> str:
    """Return a relative path in canonical form: NFC, with single `/` between its parts.

    Raises invalid_request naming the field for control characters, for the parts `.` and `..`, and for over
    4096 characters or 100 parts.
    """
    if len(path) > MAX_PATH_CHARACTERS or not is_plain(path):
        raise invalid(
            f"cannot accept {name} {shorten(path)!r}: it is too long or contains control characters",
            param=name,
        )
    parts = [part for part in compose_nfc(path).split("/") if part]
    if any(part in {".", ".."} for part in parts):
        raise invalid(f"cannot accept {name} {shorten(path)!r}: it contains a part . or ..", param=name)
    if len(parts) > MAX_PATH_LEVELS:
        raise invalid(
            f"cannot accept {name} {shorten(path)!r}: it has over {MAX_PATH_LEVELS} parts", param=name
        )
    return "/".join(parts)


def join_path(directory: str, name: str) -> str:
    """Return the path of a name in a directory ("" for the root)."""
    return f"{directory}/{name}" if directory else name


def directory_paths(directories: Iterable[CollectionDirectory]) -> Mapping[str, str]:
    """Return the path of each directory by its id; a directory without its parent counts as top-level."""
    known = {each.id: each for each in directories}
    paths: dict[str, str] = {}
    for each in known.values():
        line: dict[str, CollectionDirectory] = {}
        here: CollectionDirectory | None = each
        while here is not None and here.id not in paths and here.id not in line:
            line[here.id] = here
            here = known.get(here.parent_id or "")
        for directory in reversed(line.values()):
            above = paths.get(directory.parent_id or "", "")
            paths[directory.id] = join_path(above, directory.name)
    return paths


def ancestor_directories(
    directories: Iterable[CollectionDirectory], directory_id: str | None
) -> Sequence[CollectionDirectory]:
    """Return a directory and its ancestors, the highest first; () for the root.

    Raises not_found for an unknown directory.
    """
    known = {each.id: each for each in directories}
    if directory_id is not None and directory_id not in known:
        raise not_found("directory", directory_id)
    line: dict[str, CollectionDirectory] = {}
    here = known.get(directory_id or "")
    while here is not None and here.id not in line:
        line[here.id] = here
        here = known.get(here.parent_id or "")
    return list(line.values())[::-1]


def subtree(parents: Mapping[str, str | None], top_ids: Iterable[str]) -> Sequence[str]:
    """Return the existing ones of some directories and all below them, each once, parents first.

    `parents` maps each directory to its parent.
    """
    below: dict[str | None, list[str]] = {}
    for directory_id, parent_id in parents.items():
        below.setdefault(parent_id, []).append(directory_id)
    found = dict.fromkeys(top_id for top_id in top_ids if top_id in parents)
    left = list(found)
    for directory_id in left:
        new = [each for each in below.get(directory_id, ()) if each not in found]
        found.update(dict.fromkeys(new))
        left += new
    return left


def ancestor_paths(path: str) -> Sequence[str]:
    """Return a directory's path and the paths of its ancestors, the highest first; empty for the root."""
    parts = path.split("/") if path else []
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
