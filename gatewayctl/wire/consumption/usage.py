"""Usage of models on the wire: reports, and the calls in flight."""

from gatewayctl.wire.base import Reply


class UsageLine(Reply):
    """Sums of calls. The ids and names are those that the report is summed up by, "" for none.

    Tokens `cached` and `cache_written` are parts of `prompt`, `reasoning` of `completion`. `cost` is in
    dollars, null if no price is known; `unpriced` counts the calls whose price is unknown, `estimated` those
    whose tokens no provider told. `seconds` is their whole time, `first_seconds` the mean time to the first
    part of streamed answers.
    """

    day: str | None = None
    user_id: str | None = None
    user: str | None = None
    group_id: str | None = None
    group: str | None = None
    key_id: str | None = None
    key: str | None = None
    model: str | None = None
    provider: str | None = None
    endpoint: str | None = None
    requests: int
    failures: int
    prompt_tokens: int
    cached_tokens: int
    cache_written_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    total_tokens: int
    cost: float | None
    unpriced: int
    estimated: int
    seconds: float
    first_seconds: float | None


class UsageReport(Reply):
    """A report: by day in its order, else the most expensive lines first."""

    lines: list[UsageLine]


class LoadLine(Reply):
    """Calls of one user, key, model or provider: those in flight, and those of the last minute.

    `waiting` have not been answered yet. `tokens_per_second` are those of answers of the last minute,
    `first_seconds` the mean time to the first part of them.
    """

    name: str
    requests: int
    streams: int
    waiting: int
    finished: int
    failures: int
    tokens_per_second: float
    first_seconds: float | None


class QueueLine(Reply):
    """A queue: what works, what waits for its turn, and the maximum number that works, null without one.

    The names are `model NAME` for the places of `model_queues`, `files` and `batches`. Figures of the
    database are null while it does not answer.
    """

    name: str
    working: int | None = None
    waiting: int | None = None
    places: int | None = None


class LoadSnapshot(Reply):
    """What the gateway does now: the sums, lines by one quality, the busiest first, and the queues.

    `queues` is null from a daemon that does not tell them.
    """

    total: LoadLine
    lines: list[LoadLine]
    queues: list[QueueLine] | None = None
