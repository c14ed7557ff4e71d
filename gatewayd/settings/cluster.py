"""Settings of the cluster profile: several nodes on one PostgreSQL database."""

from pydantic_settings import BaseSettings

from gatewayd.settings import types
from gatewayd.settings.fields import CLUSTER, restart, setting


class ClusterFields(BaseSettings):
    """The settings of the cluster profile."""

    cluster: types.Switch = setting(
        restart(CLUSTER),
        False,
        "Whether this daemon is a node: one of several that share a PostgreSQL database.",
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
