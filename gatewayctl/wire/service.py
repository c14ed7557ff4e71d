"""Steps of an installation of the service, for output; no message of the control protocol."""

from gatewayctl.wire.base import Reply


class ServiceStep(Reply):
    """One step: `created`, `changed`, `unchanged`, `removed`, `kept`, `run` or `skipped`, and why."""

    target: str
    outcome: str
    detail: str = ""
    dry_run: bool = False
