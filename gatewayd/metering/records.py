"""Records of metered calls of models."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from gatewayd.metering.interfaces import CallAdmission

MAX_TOKENS: Final = 2**31
"""Maximum number of tokens of one kind of one call; a provider that tells more is not believed."""


class MeteredCaller(Protocol):
    """Whoever a call is made for; an `accounts.records.Actor` is one."""

    @property
    def user_id(self) -> str:
        """The id of the user."""
        ...

    @property
    def group_ids(self) -> tuple[str, ...]:
        """The ids of the user's groups."""
        ...

    @property
    def key_id(self) -> str | None:
        """The id of the API key; None for another credential."""
        ...


class TokenUsage(NamedTuple):
    """Tokens of one call: `cached` and `cache_written` are parts of `prompt`, `reasoning` of `completion`."""

    prompt: int = 0
    cached: int = 0
    cache_written: int = 0
    completion: int = 0
    reasoning: int = 0

    @property
    def total(self) -> int:
        """The tokens of prompt and completion."""
        return self.prompt + self.completion

    def plus(self, other: "TokenUsage") -> "TokenUsage":
        """Return the sums with the tokens of another call."""
        return TokenUsage._make(map(sum, zip(self, other, strict=True)))


NO_USAGE: Final = TokenUsage()


class CallOutcome(StrEnum):
    """How a call of a model ended."""

    # The answer came to its end.
    ANSWERED = "answered"
    # Nothing was sent, or the source refused the request.
    REFUSED = "refused"
    # The source could not be reached, failed, or did not answer in time.
    FAILED = "failed"
    # The source broke its answer off.
    CUT = "cut"
    # The client went away before the end of the answer.
    CANCELLED = "cancelled"


@dataclass(slots=True, eq=False)
class MeteredCall:
    """One call of a model, from before its first attempt to its end.

    `model` is the id in the catalogue, `family` the canonical id ("" if unknown), `endpoint` the word of
    `pipeline.records.Endpoint`. `key_id` is "" without a key. Monotonic times are in seconds: `began`,
    `first_at` (0.0 before the first part of the answer) and `ended_at` (0.0 in flight). `source` is the
    provider that was asked last, `upstream_model` its own id of the model; `attempts` counts the sources
    that were asked, `retries` the requests that were sent again to the same source. A call that
    `holds_calls`, of a function model that asks models of the gateway, has no tokens of its own. `usage`
    is None in flight; `is_estimated` marks one that no provider told. `cost` is in nano-dollars, None for
    an unknown price. `error_kind` is the kind of the error that ended it, "" for none, and for an answer
    that broke off. `characters` is the length of the texts of a stream that have come, `body` the request
    for estimates, dropped at the end, and `details` what the source says of the
    model, which its hosted `maker` answers ("" if unknown). `admissions` are those that admitted the call,
    and `reservation` and `place` belong to them; nobody is asked for a call that
    `is_admitted` before it runs. `chat` has the ids `chat_id`, `id` and `session_id` of the stored message
    that the call answers, None without one.
    """

    user_id: str
    group_ids: tuple[str, ...]
    key_id: str
    model: str
    endpoint: str
    request_id: str = ""
    is_stream: bool = False
    family: str = ""
    began: float = field(default_factory=time.monotonic)
    source: str = ""
    upstream_model: str = ""
    first_at: float = 0.0
    ended_at: float = 0.0
    usage: TokenUsage | None = None
    is_estimated: bool = False
    attempts: int = 0
    retries: int = 0
    holds_calls: bool = False
    outcome: CallOutcome | None = None
    error_kind: str = ""
    cost: int | None = None
    characters: int = 0
    body: Mapping[str, Any] | None = None
    details: Mapping[str, Any] | None = None
    maker: str = ""
    admissions: "Sequence[CallAdmission]" = ()
    is_admitted: bool = False
    reservation: object = None
    place: object = None
    chat: Mapping[str, Any] | None = None

    def hold_calls(self) -> None:
        """Note that it asks models of the gateway: their calls are admitted in its place."""
        self.holds_calls = True
        held, self.admissions = self.admissions, ()
        for admission in held:
            admission.settled(self)

    @property
    def seconds(self) -> float:
        """The time from the beginning to the end, 0.0 in flight."""
        return self.ended_at - self.began if self.ended_at else 0.0

    @property
    def first_seconds(self) -> float:
        """The time from the beginning to the first part of the answer, 0.0 before it."""
        return self.first_at - self.began if self.first_at else 0.0


CallPricing = Callable[[MeteredCall, TokenUsage], int | None]
"""Returns the cost of a call in nano-dollars, None for an unknown price."""
