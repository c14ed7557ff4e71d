"""Child process that renders untrusted manual pages with mandoc(1): `python -m gatewayd.extract.mandoc`.

Arguments: the file of mandoc, the sandbox (`SandboxMode`) and the maximum bytes of a reply. A request is a
page in roff, the reply its HTML. mandoc inherits the limits of this process.
"""

import contextlib
import os
import resource
import signal
import sys
import tempfile
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, SubprocessError
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.extract.records import MB, out_of_processor_time
from gatewayd.sandbox import confinement
from gatewayd.sandbox.confinement import SandboxMode
from gatewayd.workers import ParentPipe, die_with_parent

# Input is UTF-8; the HTML output writes every character unchanged.
OPTIONS: Final = ("-T", "html", "-K", "utf-8")
MAX_STATUS: Final = 4
"""Maximum exit status with output; lower ones are the severity of the faults of a page."""


def main() -> None:
    """Answer requests until the parent closes the pipe."""
    program, sandbox, limit = Path(sys.argv[1]), SandboxMode(sys.argv[2]), int(sys.argv[3])
    parent = ParentPipe()
    # A page can include files below the current directory: a deleted one has no files.
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    Path(folder).rmdir()
    for message, page in parent.messages():
        try:
            html = format_page(program, sandbox, page, limit)
        except GatewayError as error:
            parent.refuse(message, error)
        except (OSError, SubprocessError) as error:
            parent.refuse(message, GatewayError(ErrorKind.UNAVAILABLE, f"cannot start mandoc: {error}"))
        else:
            parent.answer(message, {}, html)


def format_page(program: Path, sandbox: SandboxMode, page: bytes, limit: int) -> bytes:
    """Return a page as HTML.

    Raises invalid_request if mandoc fails or writes more than `limit` bytes, OSError or SubprocessError if it
    cannot be started.
    """
    confine = partial(_confine, sandbox, program)
    # The daemon determined the program; no argument comes from the page.
    with Popen(  # noqa: S603
        [program, *OPTIONS], stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={}, preexec_fn=confine
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("mandoc was started with pipes")
        # mandoc reads the whole page before it writes, unless it fails.
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(page)
            process.stdin.close()
        html = process.stdout.read(limit + 1)
        if len(html) > limit:
            process.kill()
            raise _failure(f"its HTML takes more than {limit // MB} MB; split it")
    if process.returncode == -signal.SIGXCPU:
        seconds = resource.getrlimit(resource.RLIMIT_CPU)[1] - 1
        raise GatewayError(ErrorKind.INVALID_REQUEST, out_of_processor_time(seconds))
    if not 0 <= process.returncode <= MAX_STATUS:
        raise _failure(f"mandoc {_ending(process.returncode)}")
    if not html:
        raise _failure("mandoc wrote nothing")
    return html


def _confine(sandbox: SandboxMode, program: Path) -> None:
    die_with_parent()
    # At the soft limit the kernel sends SIGXCPU, at the hard one SIGKILL, which would not tell the reason.
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    if hard != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_CPU, (hard - 1, hard))
    confinement.apply_sandbox(sandbox, [], program)


def _ending(status: int) -> str:
    return f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"


def _failure(reason: str) -> GatewayError:
    return GatewayError(ErrorKind.INVALID_REQUEST, f"cannot read the manual page: {reason}")


if __name__ == "__main__":
    main()
