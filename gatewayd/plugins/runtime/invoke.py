"""Guarded execution of plugin code: every exception is caught here and becomes a PluginError.

Only this module of the plugins catches every exception, `SystemExit` and `KeyboardInterrupt` included:
plugin code may raise anything, and must not end the thread, the loop or the gateway.
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
"""Maximum length of the text of an exception; the rest is cut off."""

MAX_RETRY_AFTER_DIGITS: Final = 6
"""Maximum number of digits of a `Retry-After` header in seconds."""


@dataclass(slots=True)
class PluginOutcome:
    """The return value of code, or the exception that it raised."""

    value: Any = None
    error: BaseException | None = None


class PluginError(GatewayError):
    """Code of a plugin failed, or code of another plugin that it called.

    `names` are the plugins on the path of the failure, each once, this one first; `failed` has the details
    without this plugin. `text` is the text of the exception and `exception` the name of its type. `status`
    is the status of an HTTP exception, None for others. `line` is the last line reached in the source of
    the plugin.
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
    """Details of a failure; `exception` is empty for a failure found by the gateway.

    `names` are the other plugins on its path, such as `pipe x`, the outermost first.
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
        """The other plugins, then type and text of the exception."""
        return ": ".join([*self.names, self.reason])

    @property
    def reason(self) -> str:
        """Type and text of the exception."""
        if not self.exception:
            return self.text
        return f"{self.exception}: {self.text}" if self.text else self.exception


def run_guarded(work: Callable[[], Any]) -> PluginOutcome:
    """Run code of a plugin and return its outcome."""
    try:
        return PluginOutcome(work())
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything
        return PluginOutcome(error=error)


async def run_guarded_async(work: Callable[[], Awaitable[Any]]) -> PluginOutcome:
    """Await code of a plugin and return its outcome; a cancellation of this task is raised."""
    try:
        return PluginOutcome(await work())
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return PluginOutcome(error=error)
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything
        return PluginOutcome(error=error)


def read_failure(error: BaseException, path: str | None = None) -> FailureDetails:
    """Return the details of an exception; `path` is the file name of the source of the plugin."""
    if isinstance(error, PluginError):
        return FailureDetails(error.reason, line=_line(error, path), code=error.code, names=error.names)
    if isinstance(error, GatewayError):
        # The others are what the plugin did; this one is the gateway itself.
        status = 503 if error.kind is ErrorKind.UNAVAILABLE else None
        return FailureDetails(
            error.message, "", status, _line(error, path), code=error.code, retry_after=error.retry_after
        )
    read = run_guarded(lambda: _http(error))
    status, text, retry_after = read.value or (None, None, None)
    shown = shorten(_text(error) if text is None else text, MAX_TEXT_CHARACTERS)
    return FailureDetails(shown, type(error).__name__, status, _line(error, path), retry_after=retry_after)


def _text(error: BaseException) -> str:
    shown = run_guarded(lambda: str(error))
    return shown.value if isinstance(shown.value, str) else ""


def _http(error: BaseException) -> tuple[int, str, int | None] | None:
    """Return status, detail and seconds to wait of a class named HTTPException, None for others.

    Starlette is not imported for it. Exceptions of its attributes are raised.
    """
    if not any(base.__name__ == "HTTPException" for base in type(error).__mro__):
        return None
    status, detail = getattr(error, "status_code", None), getattr(error, "detail", None)
    if not isinstance(status, int) or isinstance(status, bool):
        return None
    return status, str(detail), _retry_after(getattr(error, "headers", None))


def _retry_after(headers: Any) -> int | None:
    """Return the seconds of a `Retry-After` header; None for a date or an invalid value."""
    if not isinstance(headers, Mapping):
        return None
    found = [value for name, value in headers.items() if str(name).lower() == "retry-after"]
    text = str(found[0]) if found else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MAX_RETRY_AFTER_DIGITS else None


def _line(error: BaseException, path: str | None) -> int | None:
    frames = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in frames if frame.f_code.co_filename == path]
    return lines[-1] if lines else None
