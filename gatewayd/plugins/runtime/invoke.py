"""Where code of plugins is run: whatever it raises ends here and becomes one kind of error.

This is the one place of plugins that catches everything, `SystemExit` and `KeyboardInterrupt` too: foreign
code may raise anything, and must not take the thread, the loop or the gateway with it.
"""

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.errors import ErrorKind, GatewayError, shorten

log = logging.getLogger(__name__)

MAX_TEXT_CHARACTERS: Final = 4000
"""Characters of an exception's text that are kept."""

MAX_RETRY_AFTER_DIGITS: Final = 6
"""Digits of the seconds after which a plugin lets somebody try again."""


@dataclass(slots=True)
class CallOutcome:
    """What some code returned, or what it raised."""

    value: Any = None
    error: BaseException | None = None


class PluginError(GatewayError):
    """Code of a plugin failed, its own or that of another which it asked.

    `names` are the plugins that the failure came through, each once, beginning with this one, and `failed` is
    what is known of it without this one. `text` is the exception's own text and `exception` the name of its
    type. `status` is that of an HTTP exception, None for others. `line` is the last line of the plugin's own
    source that was reached.
    """

    def __init__(
        self,
        plugin: str,
        plugin_id: str,
        error: "FailureDetails",
        *,
        kind: ErrorKind = ErrorKind.PLUGIN_FAILED,
    ) -> None:
        names = tuple(dict.fromkeys([f"{plugin} {plugin_id}", *error.names]))
        sentence = ": ".join([*names, error.reason])
        super().__init__(kind, sentence, code=error.code, retry_after=error.retry_after)
        self.plugin_id = plugin_id
        self.failed = error
        self.names = names
        self.reason = error.reason
        self.text = ": ".join([*names[1:], error.text])
        self.exception = error.exception
        self.status = error.status
        self.line = error.line


@dataclass(frozen=True, slots=True)
class FailureDetails:
    """What is known of a failure; `exception` is empty for one that the gateway itself found.

    `names` are other plugins that it came through, as `pipe x`, the outermost first.
    """

    text: str
    exception: str = ""
    status: int | None = None
    line: int | None = None
    code: str | None = None
    retry_after: int | None = None
    names: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The other plugins, the exception's type and text."""
        return ": ".join([*self.names, self.reason])

    @property
    def reason(self) -> str:
        """The exception's type and text."""
        if not self.exception:
            return self.text
        return f"{self.exception}: {self.text}" if self.text else self.exception


def run_guarded(work: Callable[[], Any]) -> CallOutcome:
    """Run code of a plugin and return what came of it."""
    try:
        return CallOutcome(work())
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything
        return CallOutcome(error=error)


async def run_guarded_async(work: Callable[[], Awaitable[Any]]) -> CallOutcome:
    """Await code of a plugin and return what came of it; being cancelled goes through."""
    try:
        return CallOutcome(await work())
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return CallOutcome(error=error)
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything
        return CallOutcome(error=error)


def read_failure(error: BaseException, path: str | None = None) -> FailureDetails:
    """Return what is known of an exception; `path` is the file name of the plugin's own code."""
    if isinstance(error, PluginError):
        return FailureDetails(error.reason, line=_line(error, path), code=error.code, names=error.names)
    if isinstance(error, GatewayError):
        return FailureDetails(error.message, line=_line(error, path), code=error.code)
    read = run_guarded(lambda: _http(error))
    status, text, retry_after = read.value or (None, None, None)
    shown = shorten(_text(error) if text is None else text, MAX_TEXT_CHARACTERS)
    return FailureDetails(shown, type(error).__name__, status, _line(error, path), retry_after=retry_after)


def _text(error: BaseException) -> str:
    shown = run_guarded(lambda: str(error))
    return shown.value if isinstance(shown.value, str) else ""


def _http(error: BaseException) -> tuple[int, str, int | None] | None:
    """Return status, detail and seconds to wait of starlette's HTTPException and its kin.

    They are not imported for it; what they raise when they are read is raised.
    """
    if not any(base.__name__ == "HTTPException" for base in type(error).__mro__):
        return None
    status, detail = getattr(error, "status_code", None), getattr(error, "detail", None)
    if not isinstance(status, int) or isinstance(status, bool):
        return None
    return status, str(detail), _retry_after(getattr(error, "headers", None))


def _retry_after(headers: Any) -> int | None:
    """Return the seconds of a header `Retry-After`; None for a date and for nonsense."""
    if not isinstance(headers, Mapping):
        return None
    found = [value for name, value in headers.items() if str(name).lower() == "retry-after"]
    text = str(found[0]) if found else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MAX_RETRY_AFTER_DIGITS else None


def _line(error: BaseException, path: str | None) -> int | None:
    frames = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in frames if frame.f_code.co_filename == path]
    return lines[-1] if lines else None
