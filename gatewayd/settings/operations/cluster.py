"""Settings of the cluster profile: several nodes on one PostgreSQL database."""

from typing import Annotated, Literal

from pydantic import AfterValidator, SecretStr
from pydantic_settings import BaseSettings

from gatewayd.settings import types
from gatewayd.settings.fields import CLUSTER, restart, setting

_SCHEMES = ("redis://", "rediss://", "unix://", "redis+sentinel://")


def _redis(secret: SecretStr) -> SecretStr:
    url = secret.get_secret_value()
    if url and not (url.startswith(_SCHEMES) and url.partition("://")[2]):
        raise ValueError("not an address of Redis")
    return secret


RedisUrl = Annotated[
    SecretStr,
    AfterValidator(_redis),
    types.ExpectedValue(
        'redis://HOST, rediss://HOST, unix:///SOCKET, redis+sentinel://HOST:PORT,.../SERVICE, or ""'
    ),
]


WithoutRedis = Annotated[Literal["open", "closed"], types.ExpectedValue('"open" or "closed"')]


class ClusterFields(BaseSettings):
    """The settings of the cluster profile."""

    cluster: types.Switch = setting(
        restart(CLUSTER),
        False,
        "Whether this daemon is a node: one of several that share a PostgreSQL database, a file_store and a"
        " Redis.",
    )
    node_name: types.Line = setting(
        restart(CLUSTER),
        "",
        "Name of this node; the host name and the name of data_dir when empty.",
        max_length=255,
    )
    node_lease: types.Seconds = setting(
        restart(CLUSTER),
        12.0,
        "Time after which a node that does not answer counts as dead, so that others take over its work.",
        ge=2,
        le=300,
    )
    limits_without_redis: WithoutRedis = setting(
        restart(CLUSTER),
        "open",
        "What a node does while Redis cannot be reached: open counts requests and tokens a minute and"
        " parallel calls by itself, closed refuses the calls that such a limit concerns.",
    )
    redis_url: RedisUrl = setting(
        restart(CLUSTER),
        SecretStr(""),
        "Redis that carries what is live between nodes, events and tickets of event streams; they stay in"
        " the memory of this daemon when empty.",
    )
