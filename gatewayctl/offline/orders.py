"""Work on the state of a gateway without its daemon: one order to `python -m gatewayd.offline`."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from gatewayctl.failures import CommandError

PROGRAM: Final = "gatewayd.offline"

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="Configuration file; that of the service if it is not given."
    ),
]


def run_order(verb: str, tell: Callable[[str], None], config: Path | None, **values: Any) -> Any:
    """Run an order and return its result; `tell` gets what it does at the moment. Raises CommandError."""
    order = {"verb": verb, "config": None if config is None else str(config.absolute()), **values}
    command = [sys.executable, "-m", PROGRAM]
    with subprocess.Popen(  # noqa: S603 - our own program
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("both are pipes")
        process.stdin.write(json.dumps(order).encode())
        process.stdin.close()
        for line in process.stdout:
            message = json.loads(line)
            if "progress" in message:
                tell(message["progress"])
            elif "failure" in message:
                raise CommandError(**message["failure"])
            else:
                return message["result"]
    raise CommandError("internal", f"cannot go on: {PROGRAM} ended with status {process.returncode}", hint="")
