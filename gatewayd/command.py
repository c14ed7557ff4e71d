"""The command `gatewayd`: arguments, settings, and then the daemon."""

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

import uvloop

from gatewayd import __version__
from gatewayd.daemon import Daemon, DaemonInvocation, check, fetch_model, migrate_database, start_logging
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.observe.outputs import queued_outputs
from gatewayd.quickstart import Quickstart
from gatewayd.settings import DEFAULT_FILE, ConfigurationError, Settings, load, process_environment

# sysexits(3), as service managers and scripts know them.
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
    """Exits with EX_USAGE instead of 2, so that the service manager does not try again."""

    def error(self, message: str) -> Any:
        """Say what is wrong with the arguments."""
        self.exit(EX_USAGE, f"gatewayd: cannot use the arguments: {message}\n{self.format_usage()}")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the daemon's few arguments."""
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
    """Do what the arguments ask and return the exit status."""
    chosen = parser.parse_args(arguments)
    if chosen.state is not None and not chosen.quickstart:
        parser.error("--state goes with --quickstart")
    os.umask(0o077)
    quickstart = Quickstart(chosen.state, sys.stdout) if chosen.quickstart else None
    if quickstart is not None:
        environ = quickstart.environment(environ)
    read = partial(
        load,
        chosen.file,
        environ,
        quickstart.overrides() if quickstart else {},
        # A quick start is none of the service's business, whose file it may not read either.
        default_file=None if quickstart else DEFAULT_FILE,
    )
    try:
        settings = read()
    except ConfigurationError as error:
        for problem in error.problems:
            print(f"gatewayd: {problem}", file=sys.stderr)  # noqa: T201 - there is no log yet
        return EX_CONFIG
    if chosen.check:
        return _check(settings)
    start_logging(settings, environ)
    invocation = DaemonInvocation(
        load=read,
        environ=environ,
        pid=os.getpid(),
        prepare=quickstart.prepare if quickstart else None,
        on_ready=quickstart.greet if quickstart else None,
    )
    if chosen.fetch_model:
        return _run(fetch_model(settings, print))
    if chosen.migrate:
        return _run(migrate_database(settings))
    return _run(Daemon(settings, invocation).run())


def _leave(status: int) -> NoReturn:
    """End the process at once, as everything of the daemon is closed by now.

    The interpreter's own end waits for threads of plugins, and runs code of theirs that may never return.
    """
    logging.shutdown()
    # Who started it may have closed them, and who read them may have gone.
    for stream in filter(None, (sys.stdout, sys.stderr)):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(status)


def _check(settings: Settings) -> int:
    try:
        check(settings)
    except GatewayError as error:
        print(f"gatewayd: {error.message}", file=sys.stderr)  # noqa: T201 - the answer
        return EX_CONFIG
    return EX_OK


def _run(work: Coroutine[Any, Any, None]) -> int:
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(work)
    except GatewayError as error:
        print(f"gatewayd: {error.message}", file=sys.stderr)  # noqa: T201 - the last word
        return EXITS.get(error.kind, EX_FAILURE)
    except KeyboardInterrupt:
        return EX_OK
    return EX_OK
