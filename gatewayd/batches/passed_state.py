"""State of a batch that a provider runs, on disk: it survives a kill of the daemon."""

import os
from collections.abc import Collection
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import orjson

from gatewayd.fsync import sync_to_disk

SUFFIX = ".json"


@dataclass(slots=True)
class PassedState:
    """What the gateway knows of a batch at its provider.

    `tried_at` is the epoch second of the first request that may have begun it, 0 before. `batch_id` is its
    id there, "" as long as the answer to that request is not known. `file_id` is the file of its requests,
    `sent` their number. `rejected` are ids of batches that were looked into and are not this one. With
    `is_fetched` all results are stored.
    """

    provider: str
    file_id: str = ""
    sent: int = 0
    tried_at: int = 0
    batch_id: str = ""
    rejected: tuple[str, ...] = ()
    is_fetched: bool = False


class PassedStateFile:
    """The file of one batch; its methods block and run in threads."""

    def __init__(self, folder: Path, batch_id: str) -> None:
        self._path = folder / f"{batch_id}{SUFFIX}"
        self.requests = folder / f"{batch_id}.jsonl"
        """Where the requests for the provider are written."""

    def load(self) -> PassedState | None:
        """Return the state, None if nothing was ever submitted; raises OSError for an unreadable one."""
        try:
            value = orjson.loads(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except orjson.JSONDecodeError as error:
            raise OSError(f"cannot read {self._path.name}: it is not JSON") from error
        known = {each.name: value[each.name] for each in fields(PassedState) if each.name in value}
        return PassedState(**{**known, "rejected": tuple(known.get("rejected", ()))})

    def save(self, state: PassedState) -> None:
        """Replace the state; when this returns, it survives a power failure."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = self._path.with_suffix(".part")
        with open(part, "wb", opener=_private) as file:
            file.write(orjson.dumps(asdict(state)))
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._path)
        sync_to_disk(self._path.parent)

    def remove(self) -> None:
        """Delete the state and the requests."""
        self.requests.unlink(missing_ok=True)
        self._path.unlink(missing_ok=True)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def remove_other_states(folder: Path, kept: Collection[str]) -> None:
    """Delete the files of all but these batches."""
    for path in folder.iterdir() if folder.exists() else ():
        if path.name.partition(".")[0] not in kept:
            path.unlink(missing_ok=True)
