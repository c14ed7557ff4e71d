"""A worker process that does what it is told, the good and the bad."""

import os
import resource
import signal
import sys
import time

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.workers import ParentPipe


def _taken(size: int) -> str:
    try:
        return f"{len(bytearray(size))}"
    except MemoryError:
        return "no memory"


def _another(leaves: bool) -> int:
    """Start a process that has the pipes of this one, in its group or in a session of its own."""
    pid = os.fork()
    if pid:
        return pid
    if leaves:
        os.setsid()
    time.sleep(60)
    os._exit(0)


def main() -> None:  # noqa: C901
    parent = ParentPipe()
    for message, blob in parent.messages():
        match message["do"]:
            case "echo":
                parent.answer(message, {"said": message["say"]}, blob)
            case "later":
                later = message
            case "both":
                parent.answer(message, {"said": "second"})
                parent.answer(later, {"said": "first"})
            case "refuse":
                parent.refuse(
                    message, GatewayError(ErrorKind.CONFLICT, "cannot do it", param="do", code="no")
                )
            case "print":
                sys.stdout.write("x" * 200_000)
                sys.stdout.flush()
                os.write(1, b"to standard output\n")
                parent.answer(message, {"said": "printed"})
            case "limits":
                found = [resource.getrlimit(what)[0] for what in (resource.RLIMIT_AS, resource.RLIMIT_CPU)]
                parent.answer(message, {"limits": found, "nice": os.nice(0), "environment": dict(os.environ)})
            case "raise":
                raise ValueError("cannot go on")
            case "die":
                os.kill(os.getpid(), getattr(signal, message["signal"]))
            case "nonsense":
                parent._answers.write(message["bytes"].encode("latin-1"))
                parent._answers.flush()
            case "say and die":
                os.write(2, message["bytes"].encode())
                os._exit(1)
            case "talk":
                for _ in range(1000):
                    os.write(2, b"\n" * 65536)
                parent.answer(message, {"said": "enough"})
            case "speak":
                for number in range(message["times"]):
                    parent.say({"said": number}, blob)
                parent.answer(message, {"said": "enough"})
            case "hear":
                parent.say({"heard": message["say"]})
            case "take memory":
                parent.answer(message, {"said": _taken(message["bytes"])})
            case "start another":
                parent.answer(message, {"pid": _another(message["leaves"])})
                if message["leaves"]:
                    os._exit(0)
            case "close input":
                os.close(0)
                parent.answer(message, {"said": "closed"})
                time.sleep(60)
            case "hang":
                signal.pause()


if __name__ == "__main__":
    main()
