"""Limits of one completion, and the error for a completion that exceeds them; pure."""

from typing import Final

from gatewayd.errors import ErrorKind, GatewayError

MAX_TOOL_CALLS: Final = 1000
"""Maximum number of tool calls in one choice, and of elements in one `tool_calls` list."""

MAX_ARGUMENT_CHARACTERS: Final = 16 * 1024 * 1024
"""Maximum length of the arguments of all tool calls in one choice."""

MAX_ARGUMENT_MARKS: Final = 500_000
"""Maximum number of opening brackets and commas in the same arguments, those inside strings included."""

MAX_NAME_CHARACTERS: Final = 4096
"""Maximum length of a tool name."""

MAX_CHOICES: Final = 128
"""Maximum number of choices in one completion; equals the maximum of `n` in the OpenAI protocol."""

MAX_LINE_BYTES: Final = 1024 * 1024
"""Maximum size of one line, and of one event, of a stream."""

MAX_EVENT_CONTAINERS: Final = 20_000
MAX_EVENT_COMMAS: Final = 200_000
"""Maximum number of opening brackets and of commas in an event over 128 KiB, those in strings included."""

LARGE_EVENT_BYTES: Final = 128 * 1024

MAX_STREAM_BYTES: Final = 256 * 1024 * 1024
"""Maximum size of a stream."""

MAX_KEPT_CHARACTERS: Final = 4 * 1024 * 1024
"""Maximum length of text and reasoning that a stored chat keeps of one completion."""


class AnswerSizeError(GatewayError):
    """A completion exceeds a limit: upstream_failed. `reason` completes "cannot get an answer from ...: "."""

    def __init__(self, reason: str) -> None:
        super().__init__(ErrorKind.UPSTREAM_FAILED, f"cannot get an answer: {reason}")
        self.reason = reason


def check_calls(number: int) -> None:
    """Raise AnswerSizeError if a completion has too many tool calls."""
    if number > MAX_TOOL_CALLS:
        raise AnswerSizeError(f"it has over {MAX_TOOL_CALLS} tool calls")


def check_choices(number: int) -> None:
    """Raise AnswerSizeError if a completion has too many choices."""
    if number > MAX_CHOICES:
        raise AnswerSizeError(f"it has over {MAX_CHOICES} choices")
