"""`gatewayctl metrics`: the metrics of the daemon."""

import sys

import typer

from gatewayctl.command import Session, add_verb
from gatewayctl.wire import routes


def register(app: typer.Typer) -> None:
    """Add the verb to the root."""
    add_verb(
        app, "metrics", show, "gatewayctl metrics", "gatewayctl metrics | grep gatewayd_model_calls_total"
    )


def show(session: Session) -> None:
    """Print the metrics in the text format of Prometheus, whatever the output format.

    gatewayd-operations(7), METRICS lists them, and says how Prometheus reads them over TCP.
    """
    sys.stdout.write(session.client.read(routes.READ_METRICS))
