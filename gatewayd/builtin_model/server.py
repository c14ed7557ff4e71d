"""Server process of the built-in model: `python -m gatewayd.builtin_model.server --help`.

Only this module imports the inference library, and it imports nothing of the gateway, so that the process can
be started by the path of the file with an empty environment and a small import path. A crash of the native
code ends this process and not the daemon.

When it is ready, it writes one line to standard output: `{"listening": "<path of the unix socket>"}`. All
other output goes to standard error. It exits with its parent, at the end of standard input, or on SIGTERM.
"""

import argparse
import ctypes
import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import xllamacpp

PR_SET_PDEATHSIG = 1
"""linux/prctl.h"""

ERRORS_ONLY = 1
"""Verbosity of the engine."""

HTTP_THREADS = 64
"""Maximum number of requests that the engine accepts at once; those beyond its slots are queued there."""


@dataclass(frozen=True, slots=True)
class BuiltinServerOptions:
    """Options of the server; `context` is in tokens for each of the `slots`, which answer in parallel."""

    weights: Path
    socket: Path
    alias: str
    threads: int
    slots: int
    context: int


def parse(arguments: Sequence[str]) -> BuiltinServerOptions:
    """Return the options of a command line; exits with status 2 if it is invalid."""
    parser = argparse.ArgumentParser(prog="gatewayd.builtin_model.server", description="Serve one model.")
    parser.add_argument("--weights", type=Path, required=True, help="GGUF file")
    parser.add_argument("--socket", type=Path, required=True, help="unix socket to listen on, ends in .sock")
    parser.add_argument("--alias", required=True, help="id of the model")
    parser.add_argument("--threads", type=int, default=1, help="threads that compute")
    parser.add_argument("--slots", type=int, default=4, help="answers in parallel")
    parser.add_argument("--context", type=int, default=4096, help="tokens of context for each answer")
    return BuiltinServerOptions(**vars(parser.parse_args(arguments)))


def engine_parameters(options: BuiltinServerOptions) -> xllamacpp.CommonParams:
    """Return the parameters of the engine: no downloads, no web page, no unlimited cache."""
    params = xllamacpp.CommonParams()
    params.model.path = str(options.weights)
    params.model_alias = {options.alias}
    # A host name that ends in .sock makes the engine listen on a unix socket.
    params.hostnames = [str(options.socket)]
    params.offline = True
    params.ui = False
    params.endpoint_slots = False
    params.n_threads_http = HTTP_THREADS
    params.verbosity = ERRORS_ONLY
    # With one thread too many the barriers of the engine spin for a core that other programs use.
    params.cpuparams.n_threads = options.threads
    params.cpuparams_batch.n_threads = options.threads
    # Each slot has a context of its own, so that a long answer does not shorten another.
    params.n_parallel = options.slots
    params.n_ctx = options.slots * options.context
    params.kv_unified = False
    params.fit_params = False
    # Only the slots cache past prompts; by default the engine uses 8 GiB for them.
    params.cache_ram_mib = 0
    params.cache_idle_slots = False
    return params


def die_with_parent() -> None:
    """Let the kernel kill this process when its parent ends, also while the model is being loaded."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
            raise OSError(ctypes.get_errno(), "cannot request a signal at the end of the parent")


def take_stdout() -> int:
    """Return a descriptor of standard output and redirect other output there to standard error."""
    sys.stdout.flush()
    own = os.dup(1)
    os.dup2(2, 1)
    return own


def announce_ready(descriptor: int, options: BuiltinServerOptions) -> None:
    """Report to the parent that the server is ready."""
    line = json.dumps({"listening": str(options.socket)}) + "\n"
    os.write(descriptor, line.encode())
    os.close(descriptor)


def serve(options: BuiltinServerOptions) -> int:
    """Serve until standard input ends; return 1 if the engine cannot load the model, which it has logged."""
    stdout = take_stdout()
    options.socket.unlink(missing_ok=True)
    try:
        server = xllamacpp.Server(engine_parameters(options))
    except RuntimeError:
        return 1
    announce_ready(stdout, options)
    # The end of a parent before `die_with_parent` is noticed here, because its end of the pipe is closed.
    while os.read(0, 4096):
        pass
    # A normal exit of the engine would wait for running answers, and there is nothing to save.
    os._exit(0 if server.listening_address else 1)


def main(arguments: Sequence[str]) -> int:
    """Prepare the process and serve; returns the exit status."""
    options = parse(arguments)
    # Ctrl-C in a terminal is for the parent, which lets running answers finish.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    die_with_parent()
    # Other users must not connect to the socket.
    os.umask(0o077)
    return serve(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
