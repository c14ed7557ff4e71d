"""Settings of the cluster profile: several daemons on one database."""

from pydantic_settings import BaseSettings

from gatewayd.settings import types
from gatewayd.settings.fields import CLUSTER, restart, setting


class ClusterFields(BaseSettings):
    """The settings of the cluster profile."""

    cluster: types.Switch = setting(
        restart(CLUSTER),
        False,
        "Whether other daemons may use the same database, which must be PostgreSQL, at the same time.",
    )
