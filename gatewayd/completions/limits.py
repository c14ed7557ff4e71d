"""How much one answer may hold, and the failure of one that holds more; pure."""

from typing import Final

from gatewayd.errors import ErrorKind, GatewayError

MAX_TOOL_CALLS: Final = 1000
"""Tool calls of one choice of an answer, and elements of one `tool_calls` list."""

MAX_ARGUMENT_CHARACTERS: Final = 16 * 1024 * 1024
"""Characters of the arguments of all tool calls of one choice."""

MAX_ARGUMENT_MARKS: Final = 500_000
"""Brackets that open, and commas, of the same arguments; those in their texts count."""

MAX_NAME_CHARACTERS: Final = 4096
"""Characters of the name of one tool."""

MAX_CHOICES: Final = 128
"""Choices of one answer: the maximum of `n` in the OpenAI protocol."""

MAX_LINE_BYTES: Final = 1024 * 1024
"""Bytes of one line, and of one event, of a streamed answer."""

MAX_EVENT_CONTAINERS: Final = 20_000
MAX_EVENT_COMMAS: Final = 200_000
"""Brackets that open, and commas, of one event that is longer than 128 KiB; those in its texts count."""

LARGE_EVENT_BYTES: Final = 128 * 1024

MAX_STREAM_BYTES: Final = 256 * 1024 * 1024
"""Bytes of a streamed answer."""

MAX_KEPT_CHARACTERS: Final = 4 * 1024 * 1024
"""Characters of text and reasoning of an answer that a chat keeps."""


class AnswerSizeError(GatewayError):
    """An answer is over a limit: upstream_failed. `reason` completes "cannot get an answer from ...: "."""

    def __init__(self, reason: str) -> None:
        super().__init__(ErrorKind.UPSTREAM_FAILED, f"cannot get an answer: {reason}")
        self.reason = reason


def check_calls(number: int) -> None:
    """Raise AnswerSizeError for more tool calls than an answer may have."""
    if number > MAX_TOOL_CALLS:
        raise AnswerSizeError(f"it has over {MAX_TOOL_CALLS} tool calls")


def check_choices(number: int) -> None:
    """Raise AnswerSizeError for more choices than an answer may have."""
    if number > MAX_CHOICES:
        raise AnswerSizeError(f"it has over {MAX_CHOICES} choices")
