"""State of a batch that a provider runs: it survives a kill of the daemon, and any node goes on from it."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import orjson

SUFFIX: Final = ".json"
"""Of the file of a state, in which former versions kept it."""

REQUESTS_SUFFIX: Final = ".jsonl"
"""Of the file of the requests that are sent to the provider."""


@dataclass(slots=True)
class PassedState:
    """What the gateway knows of a batch at its provider.

    `tried_at` is the epoch second of the first request that may have begun it, 0 before, and `last_tried_at`
    that of the last one. `batch_id` is its id there, "" as long as the answer to that request is not known.
    `file_id` is the file of its requests, `sent` their number. `rejected` are ids of batches that were looked
    into and are not this one. With `is_fetched` all results are stored.
    """

    provider: str
    file_id: str = ""
    sent: int = 0
    tried_at: int = 0
    batch_id: str = ""
    rejected: tuple[str, ...] = ()
    is_fetched: bool = False
    last_tried_at: int = 0


def state_of(value: Mapping[str, Any]) -> PassedState:
    """Return a stored state, which may be that of another version."""
    known = {each.name: value[each.name] for each in fields(PassedState) if each.name in value}
    return PassedState(**{**known, "rejected": tuple(known.get("rejected", ()))})


def read_state_file(path: Path) -> PassedState | None:
    """Return the state in a file of a former version, None without one; raises OSError. Blocks."""
    try:
        return state_of(orjson.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (orjson.JSONDecodeError, TypeError) as error:
        raise OSError(f"cannot read {path.name}: it is no state of a batch") from error


def state_files(folder: Path) -> Iterator[Path]:
    """Yield the files of states, whose names are the ids of their batches; blocks."""
    yield from folder.glob(f"*{SUFFIX}") if folder.exists() else ()


def remove_other_states(folder: Path, kept: Collection[str]) -> None:
    """Delete the files of all but these batches; blocks."""
    for path in folder.iterdir() if folder.exists() else ():
        if path.name.partition(".")[0] not in kept:
            path.unlink(missing_ok=True)
