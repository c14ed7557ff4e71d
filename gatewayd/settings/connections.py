"""Settings of clients: minimum transfer rates, and limits per account and per address."""

from typing import Any, Final

from pydantic import ByteSize
from pydantic_settings import BaseSettings

from gatewayd.settings import types
from gatewayd.settings.fields import LIMITS, SERVER, reload, restart, setting

MAX_CONNECTION_LIMIT: Final = 1_000_000


def _bound(default: int, sentence: str) -> Any:
    """Return the field of a limit, which 0 switches off."""
    return setting(restart(LIMITS), default, f"{sentence}; 0 for any number.", ge=0, le=MAX_CONNECTION_LIMIT)


class ConnectionFields(BaseSettings):
    """The settings of connections."""

    fast_path: types.Switch = setting(
        restart(SERVER), True, "Answer plain requests without a task of their own, which takes half the time."
    )
    client_body_timeout: types.Seconds = setting(
        restart(LIMITS),
        30.0,
        "Maximum time for which a request body may arrive more slowly than client_body_min_rate.",
        gt=0,
        le=3600,
    )
    client_body_min_rate: types.Size = setting(
        restart(LIMITS),
        ByteSize(1024),
        "Minimum rate of a request body, in bytes a second; with 0, only a pause ends the request.",
        ge=0,
        le=2**30,
    )
    send_timeout: types.Seconds = setting(
        restart(LIMITS),
        30.0,
        "Maximum time for which a client may read an answer more slowly than send_min_rate.",
        gt=0,
        le=3600,
    )
    send_min_rate: types.Size = setting(
        restart(LIMITS),
        ByteSize(1024),
        "Minimum rate at which a client reads an answer, in bytes a second; with 0, only a pause ends it.",
        ge=0,
        le=2**30,
    )
    stream_unread_timeout: types.Seconds = setting(
        reload(LIMITS),
        300.0,
        "Time for which the answer of a resumable stream goes on while nobody reads it.",
        ge=0,
        le=86_400,
    )
    stream_retention: types.Seconds = setting(
        reload(LIMITS), 3600.0, "Time for which an ended resumable stream is kept.", ge=0, le=30 * 86_400
    )
    idempotency_retention: types.Seconds = setting(
        reload(LIMITS),
        86_400.0,
        "Time for which the reply to a request with an Idempotency-Key is kept.",
        ge=0,
        le=30 * 86_400,
    )
    unknown_price: types.PriceOrNone = setting(
        reload(LIMITS),
        None,
        "US dollars that a million tokens of a model without a known price count in budgets of money; empty"
        " refuses such models to callers with such a budget.",
        ge=0,
        le=1_000_000,
    )
    model_queues: types.NumberedNames = setting(
        reload(LIMITS),
        (),
        "Models or providers whose calls wait in a fair queue, each with the number of calls at a time.",
    )
    queue_weights: types.NumberedNames = setting(
        reload(LIMITS), (), "Ids of keys, users or groups with their share of the queues in place of 1."
    )
    queue_length: types.Whole = setting(
        reload(LIMITS), 100, "Maximum number of calls that wait in one queue.", ge=1, le=10_000
    )
    queue_timeout: types.Seconds = setting(
        reload(LIMITS), 300.0, "Maximum time for which a call waits in a queue.", gt=0, le=86_400
    )
    queue_hold_timeout: types.Seconds = setting(
        reload(LIMITS),
        900.0,
        "Time after which a call that is still running gives its place in the queue to the next.",
        gt=0,
        le=86_400,
    )
    account_connection_limit: types.Whole = _bound(
        2000, "Maximum number of requests of one account that are served at once"
    )
    account_upload_limit: types.Whole = _bound(200, "Maximum number of unfinished uploads of one account")
    account_download_limit: types.Whole = _bound(200, "Maximum number of unfinished downloads of one account")
    account_stream_limit: types.Whole = _bound(
        1000, "Maximum number of unfinished answers of models and event streams of one account"
    )
    address_connection_limit: types.Whole = _bound(
        4000, "Maximum number of requests from one address that are served at once"
    )
    address_upload_limit: types.Whole = _bound(400, "Maximum number of unfinished uploads from one address")
    address_download_limit: types.Whole = _bound(
        400, "Maximum number of unfinished downloads from one address"
    )
    address_stream_limit: types.Whole = _bound(
        2000, "Maximum number of unfinished answers of models and event streams from one address"
    )
