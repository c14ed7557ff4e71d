"""Records of stored usage: what is summed, and by what."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

MAX_SUM: Final = 2**53
"""Maximum of a stored sum; a sum never grows over it."""


class UsageKey(NamedTuple):
    """What tells rows apart; `day` is a date (UTC) as in RFC 3339, `key_id` "" without a key."""

    day: str
    user_id: str
    key_id: str
    model: str
    provider: str
    endpoint: str


@dataclass(slots=True)
class UsageSums:
    """Sums over calls: tokens, milliseconds, nano-dollars.

    `timed` counts the calls in `first_milliseconds`, `unpriced` those with tokens whose price is unknown,
    `estimated` those whose tokens no provider told.
    """

    requests: int = 0
    failures: int = 0
    prompt: int = 0
    cached: int = 0
    cache_written: int = 0
    completion: int = 0
    reasoning: int = 0
    milliseconds: int = 0
    first_milliseconds: int = 0
    timed: int = 0
    cost: int = 0
    unpriced: int = 0
    estimated: int = 0

    def add(self, other: "UsageSums") -> None:
        """Add the sums of further calls."""
        for name in UsageSums.__slots__:
            setattr(self, name, min(MAX_SUM, getattr(self, name) + getattr(other, name)))


class UsageDimension(StrEnum):
    """By what a report sums up."""

    DAY = "day"
    USER = "user"
    GROUP = "group"
    KEY = "key"
    MODEL = "model"
    PROVIDER = "provider"
    ENDPOINT = "endpoint"


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """A question: days from `since` to `until`, both included, "" for no bound; None for any id or name."""

    by: tuple[UsageDimension, ...] = (UsageDimension.MODEL,)
    since: str = ""
    until: str = ""
    user_id: str | None = None
    group_id: str | None = None
    key_id: str | None = None
    model: str | None = None
    provider: str | None = None
    limit: int = 1000


@dataclass(frozen=True, slots=True)
class UsageLine:
    """One line of a report: an id and a name for each dimension, and the sums."""

    ids: tuple[str, ...]
    names: tuple[str, ...]
    sums: UsageSums = field(compare=False)


class UsageStore(Protocol):
    """Stored usage; each change is committed on return."""

    async def add(self, rows: "dict[UsageKey, UsageSums]") -> None:
        """Add sums to the stored ones."""
        ...

    async def rename(self, user_id: str, pseudonym: str) -> None:
        """Replace a user by a pseudonym without keys; rows that become equal are summed."""
        ...

    async def report(self, query: UsageQuery) -> Sequence[UsageLine]:
        """Return the lines of a report: by day in its order, else the most expensive and largest first."""
        ...
