"""Standard streams of a command: a failed write is a failure with a sentence."""

import codecs
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import TextIOWrapper
from typing import Any, Final, TextIO, cast

from gatewayctl.failures import CommandError
from gatewayctl.sanitize import escaped

ESCAPES: Final = "gatewayctl.escapes"
"""Codec error handler that writes characters that an encoding lacks with the escapes of JSON."""


class GuardedStream:
    """A text stream with failures as `CommandError`, except BrokenPipeError (the reader has ended)."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text."""
        with self._guarded():
            return self._stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts; errors of `lines` propagate."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Write what is kept back."""
        with self._guarded():
            self._stream.flush()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            discard(self._stream)
            reason = (error.strerror or str(error)).lower()
            raise CommandError("system", f"cannot write the answer: {reason}") from error


class QuietStream:
    """A text stream for messages: text that cannot be written is dropped, and the command goes on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text."""
        try:
            return self._stream.write(text)
        except OSError:
            discard(self._stream)
            return len(text)

    def flush(self) -> None:
        """Write what is kept back."""
        try:
            self._stream.flush()
        except OSError:
            discard(self._stream)


def tell(text: str) -> None:
    """Write to standard error if it can be written."""
    if sys.stderr is not None:
        stream = QuietStream(sys.stderr)
        stream.write(text)
        stream.flush()


@contextmanager
def prepared_streams() -> Iterator[None]:
    """Install usable standard streams: closed ones are replaced, the others are guarded.

    Raises CommandError if there is no standard output.
    """
    if sys.stdout is None:
        raise CommandError("system", "cannot write the answer: standard output is closed")
    former = sys.stdin, sys.stdout, sys.stderr
    with ExitStack() as stack:
        stack.callback(_restore, *former)
        # In the order of their descriptors, because a file that is opened takes the lowest free one.
        sys.stdin = sys.stdin or stack.enter_context(_nothing("r"))
        sys.stderr = sys.stderr or stack.enter_context(_nothing("w"))
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper) and stream.errors != ESCAPES:
                stack.callback(stream.reconfigure, errors=stream.errors)
                stream.reconfigure(errors=ESCAPES)
        sys.stdout = cast("TextIO", GuardedStream(sys.stdout))
        sys.stderr = cast("TextIO", QuietStream(sys.stderr))
        yield


def discard(stream: TextIO) -> None:
    """Discard the buffered text of a stream, which the interpreter would write at exit."""
    with suppress(OSError):
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, stream.fileno())
        os.close(descriptor)


def _nothing(mode: str) -> TextIO:
    return cast("TextIO", open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123


def _restore(stdin: TextIO, stdout: TextIO, stderr: TextIO) -> None:
    sys.stdin, sys.stdout, sys.stderr = stdin, stdout, stderr


def _escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return escaped(error.object[error.start : error.end]), error.end


codecs.register_error(ESCAPES, _escape)
