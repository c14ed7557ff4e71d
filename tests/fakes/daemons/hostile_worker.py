"""The process that reads documents, with a reader that does what a document might have it do.

The document is a JSON object with `parent` (a process id), `foreign` (a file that is not the document) and
`without`, the means that the kernel lacks; the text is a JSON object of what was tried and how it failed.
"""

import ctypes
import errno
import fcntl
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from gatewayd.extract import child
from gatewayd.extract.records import ExtractedDocument
from gatewayd.ingest.records import TextPart
from gatewayd.sandbox import landlock, seccomp

X86_64: Final = {"ptrace": 101, "process_vm_readv": 310, "mount": 165, "unshare": 272, "bpf": 321}
KERNEL: Final = {"io_uring_setup": 425, "pidfd_open": 434, "clone3": 435, "memfd_secret": 447}
CLONE_NEWUSER: Final = 0x10000000


def attempts(parent: int, foreign: Path, own: Path) -> Mapping[str, Callable[[], Any]]:
    """Return what a hostile reader tries, by name."""
    libc = ctypes.CDLL(None, use_errno=True)

    def call(number: int, *arguments: int) -> None:
        if libc.syscall(number, *arguments, 0, 0, 0) < 0:
            raise OSError(ctypes.get_errno(), "no")

    tries: dict[str, Callable[[], Any]] = {
        "read the accounts": Path("/etc/passwd").read_bytes,
        "read another file": foreign.read_bytes,
        "list the folder above": lambda: list(own.parent.parent.iterdir()),
        "read the secrets of the parent": Path(f"/proc/{parent}/environ").read_bytes,
        "write a file": lambda: (own.parent / "more").write_bytes(b"x"),
        "write into another file": lambda: foreign.open("r+b"),
        "write into the document": lambda: own.open("ab"),
        "shorten another file": lambda: os.truncate(foreign, 0),
        "make a folder": lambda: (own.parent / "folder").mkdir(),
        "remove the document": own.unlink,
        "rename the document": lambda: own.rename(own.with_name("other")),
        "name another file": lambda: os.link(foreign, own.parent / "link"),
        "refer to another file": lambda: (own.parent / "link").symlink_to(foreign),
        "change the mode": lambda: own.chmod(0o666),
        "connect to the network": lambda: socket.create_connection(("127.0.0.1", 9)),
        "use a local socket": lambda: socket.socket(socket.AF_UNIX),
        "use a pair of sockets": socket.socketpair,
        "start a program": lambda: os.execv("/bin/true", ["true"]),
        "start a process": os.fork,
        "signal the parent": lambda: os.kill(parent, 0),
        "have the parent be signalled": lambda: fcntl.fcntl(0, fcntl.F_SETOWN, parent),
        "limit the parent": lambda: resource.prlimit(parent, resource.RLIMIT_CPU),
        "change the user": lambda: os.setuid(65534),
        "outlive the parent": lambda: call(157, 1, 0),
    }
    numbers = KERNEL | (X86_64 if os.uname().machine == "x86_64" else {})
    for name, number in numbers.items():
        tries[f"call {name}"] = lambda number=number: call(number, CLONE_NEWUSER, 0)
    return tries


def read(
    path: Path, name: str, content_type: str | None, limits: object, formatted: bytes
) -> ExtractedDocument:
    """Try everything."""
    asked = orjson.loads(path.read_bytes())
    if name == "abort":
        os.abort()
    outcomes = {}
    for what, attempt in attempts(asked["parent"], Path(asked["foreign"]), path).items():
        try:
            attempt()
        except OSError as error:
            outcomes[what] = errno.errorcode.get(error.errno or 0, str(error))
        else:
            outcomes[what] = "done"
    thread = threading.Thread(target=lambda: outcomes.update({"use a thread": "done"}))
    thread.start()
    thread.join()
    text = orjson.dumps(outcomes).decode()
    return ExtractedDocument(text, (TextPart(0, len(text)),))


def lack(*_: object, **__: object) -> None:
    """Refuse as a kernel does that has no such means."""
    raise OSError(errno.ENOSYS, "no such means")


def main() -> None:
    for name in orjson.loads(sys.argv[1]).get("without", ()):
        (landlock if name == "Landlock" else seccomp).restrict = lack  # type: ignore[assignment]
    child.read_document = read  # type: ignore[attr-defined]
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    child.main()


if __name__ == "__main__":
    main()
