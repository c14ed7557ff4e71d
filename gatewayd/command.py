"""The command `gatewayd`: reads arguments and settings, then runs the daemon."""

import argparse
import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn

import orjson
import uvloop

from gatewayd import __version__
from gatewayd.daemon import (
    Daemon,
    DaemonInvocation,
    check,
    examine,
    fetch_model,
    migrate_database,
    start_logging,
)
from gatewayd.doctor.findings import DoctorFinding
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.observe.outputs import queued_outputs
from gatewayd.quickstart import Quickstart
from gatewayd.settings import DEFAULT_FILE, ConfigurationError, Settings, load, process_environment

# The codes of sysexits(3), which service managers and scripts know.
EX_OK: Final = 0
EX_FAILURE: Final = 1
EX_USAGE: Final = 64
EX_TRY_LATER: Final = 75
EX_CONFIG: Final = 78
EXITS: Final = {
    ErrorKind.NOT_CONFIGURED: EX_CONFIG,
    ErrorKind.CONFLICT: EX_TRY_LATER,
    ErrorKind.UNAVAILABLE: EX_TRY_LATER,
}


class DaemonArgumentParser(argparse.ArgumentParser):
    """Exits with EX_USAGE instead of 2, so that the service manager does not restart the daemon."""

    def error(self, message: str) -> Any:
        """Print the error and the usage, and exit."""
        self.exit(EX_USAGE, f"gatewayd: cannot use the arguments: {message}\n{self.format_usage()}")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = DaemonArgumentParser(
        prog="gatewayd",
        description="Serve chat models to keyed clients. See gatewayd(8).",
        allow_abbrev=False,
    )
    parser.add_argument("-f", "--file", metavar="FILE", type=Path, help="read this configuration file")
    parser.add_argument("-n", "--check", action="store_true", help="test the configuration and exit")
    parser.add_argument(
        "--migrate", action="store_true", help="bring the database schema up to date and exit"
    )
    parser.add_argument(
        "--doctor", action="store_true", help="check the state of a stopped gateway, for gatewayctl doctor"
    )
    parser.add_argument(
        "--fetch-model", action="store_true", help="make the small built-in model ready and exit"
    )
    parser.add_argument(
        "--quickstart", action="store_true", help="try it out: state, administrator, key and model ready"
    )
    parser.add_argument(
        "--state", metavar="DIR", type=Path, help="state directory of --quickstart (./gatewayd-state)"
    )
    parser.add_argument("-V", "--version", action="version", version=f"gatewayd {__version__}")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the daemon and exit with a status of gatewayd(8)."""
    with queued_outputs():
        status = run(make_parser(), arguments, process_environment())
    _leave(status)


def run(parser: argparse.ArgumentParser, arguments: Sequence[str] | None, environ: Mapping[str, str]) -> int:
    """Run the command that the arguments select and return the exit status."""
    options = parser.parse_args(arguments)
    if options.state is not None and not options.quickstart:
        parser.error("--state goes with --quickstart")
    os.umask(0o077)
    quickstart = Quickstart(options.state, sys.stdout) if options.quickstart else None
    if quickstart is not None:
        environ = quickstart.environment(environ)
    read = partial(
        load,
        options.file,
        environ,
        quickstart.overrides() if quickstart else {},
        # A quick start ignores the configuration of the service, which it may not be able to read.
        default_file=None if quickstart else DEFAULT_FILE,
    )
    try:
        settings = read()
    except ConfigurationError as error:
        if options.doctor:
            return _report(
                [DoctorFinding("config-invalid", str(each), "gatewayd -n") for each in error.problems]
            )
        for problem in error.problems:
            print(f"gatewayd: {problem}", file=sys.stderr)  # noqa: T201 - there is no log yet
        return EX_CONFIG
    if options.check:
        return _check(settings)
    if options.doctor:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return _report(runner.run(examine(settings)))
    start_logging(settings, environ)
    invocation = DaemonInvocation(
        load=read,
        environ=environ,
        pid=os.getpid(),
        prepare=quickstart.prepare if quickstart else None,
        on_ready=quickstart.greet if quickstart else None,
    )
    if options.fetch_model:
        return _run(fetch_model(settings, print))
    if options.migrate:
        return _run(migrate_database(settings))
    return _run(Daemon(settings, invocation).run())


def _leave(status: int) -> NoReturn:
    """End the process at once; everything of the daemon is closed by now.

    The normal exit of the interpreter waits for threads of plugins and runs their exit code, which may never
    return.
    """
    logging.shutdown()
    # The parent may have closed the streams, and the reader may have ended.
    for stream in filter(None, (sys.stdout, sys.stderr)):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(status)


def _report(findings: Sequence[DoctorFinding]) -> int:
    """Print findings as JSON, the form of the control protocol."""
    shown = [
        {"code": each.code, "level": each.level.value, "sentence": each.sentence, "command": each.command}
        for each in findings
    ]
    print(orjson.dumps({"findings": shown}).decode())  # noqa: T201 - the result
    return EX_OK


def _check(settings: Settings) -> int:
    try:
        found = check(settings)
    except GatewayError as error:
        print(f"gatewayd: {error.message}", file=sys.stderr)  # noqa: T201 - the result
        return EX_CONFIG
    for line in found:
        print(line)  # noqa: T201 - the result
    return EX_OK


def _run(work: Coroutine[Any, Any, None]) -> int:
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(work)
    except GatewayError as error:
        print(f"gatewayd: {error.message}", file=sys.stderr)  # noqa: T201 - the log is closed
        return EXITS.get(error.kind, EX_FAILURE)
    except KeyboardInterrupt:
        return EX_OK
    return EX_OK
