"""Records of limits: rules, budgets and their counters, and the pots that a call draws from."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from gatewayd.limits.periods import BudgetPeriod, period_end

NANO: Final = 1_000_000_000
"""Nano-dollars of a dollar: the unit in which money is counted."""


class LimitSubject(StrEnum):
    """Whose calls a limit counts."""

    # The calls with one API key.
    KEY = "key"
    # The calls of one user, with any credential.
    USER = "user"
    # The calls of all members of a group together.
    GROUP = "group"
    # The calls of each member of a group on their own.
    MEMBER = "member"
    # The calls of each user who has no limit of their own.
    DEFAULT = "default"
    # The calls of everybody together.
    TOTAL = "total"


HELD_BY_USER: Final = frozenset({LimitSubject.MEMBER, LimitSubject.DEFAULT})
"""Subjects whose limit counts each user on their own."""

UNNAMED: Final = frozenset({LimitSubject.DEFAULT, LimitSubject.TOTAL})
"""Subjects without an id."""


class BudgetUnit(StrEnum):
    """What a budget counts."""

    TOKENS = "tokens"
    # Money, in nano-dollars.
    USD = "usd"


@dataclass(frozen=True, slots=True)
class BudgetRule:
    """An amount of tokens or nano-dollars in a period of the calendar (UTC)."""

    amount: int
    unit: BudgetUnit
    period: BudgetPeriod


@dataclass(frozen=True, slots=True)
class LimitRule:
    """A limit of one subject, for one model or, with `model` "", for all.

    `subject_id` is the id of the key, user or group, "" for other subjects; `subject_name` its name when the
    limit was set, for the sentences of refusals. None stands for no limit. `warn_percent` is the share of a
    budget at which its users are warned once a period. `storage_bytes` is a quota of the bytes in files.
    """

    id: str
    subject: LimitSubject
    subject_id: str = ""
    subject_name: str = ""
    model: str = ""
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    parallel: int | None = None
    budgets: tuple[BudgetRule, ...] = ()
    warn_percent: int | None = None
    storage_bytes: int | None = None
    created_at: int = 0
    updated_at: int = 0

    @property
    def has_rates(self) -> bool:
        """Whether it limits requests or tokens a minute, or parallel calls."""
        return not (self.requests_per_minute is self.tokens_per_minute is self.parallel is None)


class RateQuantity(StrEnum):
    """What a rate limits."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    PARALLEL = "parallel"


@dataclass(frozen=True, slots=True)
class RatePot:
    """What calls share: requests and tokens in the last minute, and calls at a time; None for no limit.

    `owner` completes "the limit of ... of ", for example "the key laptop".
    """

    id: str
    owner: str
    requests: int | None
    tokens: int | None
    parallel: int | None


@dataclass(frozen=True, slots=True)
class RateUse:
    """The present use of a pot; the seconds until the last minute is empty again."""

    requests: int = 0
    tokens: int = 0
    parallel: int = 0
    requests_reset: float = 0.0
    tokens_reset: float = 0.0


@dataclass(frozen=True, slots=True)
class RateRefusal:
    """The pot that refuses a call, and the seconds until it can take it; infinite for never."""

    pot: RatePot
    quantity: RateQuantity
    seconds: float


class CounterKey(NamedTuple):
    """The counter of a budget in one period; `holder` is a user whom the limit counts on their own, or ""."""

    limit_id: str
    holder: str
    unit: BudgetUnit
    period: BudgetPeriod
    starts_at: int

    @property
    def text(self) -> str:
        """The key as one text."""
        return f"{self.limit_id}/{self.holder}/{self.unit}/{self.period}/{self.starts_at}"

    @property
    def ends_at(self) -> int:
        """The epoch second at which the period ends."""
        return period_end(self.period, self.starts_at)


@dataclass(frozen=True, slots=True)
class CounterUse:
    """The amount of a counter; `reserved` is the part of it that open reservations hold."""

    used: int = 0
    reserved: int = 0


@dataclass(frozen=True, slots=True)
class BudgetDemand:
    """An amount that a call reserves of a budget of `most`.

    `warn_at` is the settled amount at which the user is warned, None for none. `owner` is as in `RatePot`.
    """

    key: CounterKey
    amount: int
    most: int
    warn_at: int | None
    owner: str
    user_id: str = ""


@dataclass(frozen=True, slots=True)
class BudgetReservation:
    """All that one call reserves: all of it is stored, or nothing."""

    id: str
    demands: tuple[BudgetDemand, ...]


@dataclass(frozen=True, slots=True)
class BudgetSettlement:
    """What a call has really used, in the order of the demands of its reservation."""

    reservation: BudgetReservation
    amounts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BudgetRefusal:
    """The budget that refuses a call, and its use without it."""

    demand: BudgetDemand
    use: CounterUse


@dataclass(frozen=True, slots=True)
class LedgerReport:
    """The reservations that were refused, by id, and the demands whose counters reached their warning."""

    refused: dict[str, BudgetRefusal]
    warned: tuple[BudgetDemand, ...]
