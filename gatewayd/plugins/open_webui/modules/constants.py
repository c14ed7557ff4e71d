"""`open_webui.constants`."""

from enum import Enum
from typing import Any

from gatewayd.plugins.open_webui.host_bridge import HostBridge


class TASKS(str, Enum):  # noqa: UP042 - its members are compared, formatted and shown as text
    """The names of the calls that a gateway makes for itself, as `__task__` has them."""

    DEFAULT = "default"
    TITLE_GENERATION = "title_generation"
    FOLLOW_UP_GENERATION = "follow_up_generation"
    TAGS_GENERATION = "tags_generation"
    EMOJI_GENERATION = "emoji_generation"
    QUERY_GENERATION = "query_generation"
    IMAGE_PROMPT_GENERATION = "image_prompt_generation"
    AUTOCOMPLETE_GENERATION = "autocomplete_generation"
    FUNCTION_CALLING = "function_calling"
    MOA_RESPONSE_GENERATION = "moa_response_generation"
    CONTEXT_COMPACTION = "context_compaction"
    MEMORY_REVIEW = "memory_review"

    def __str__(self) -> str:
        return self.value


class ERROR_MESSAGES(str, Enum):  # noqa: N801, UP042 - the peer's name
    """Sentences for errors, as text."""

    NOT_FOUND = "cannot find what was asked for"
    USER_NOT_FOUND = "cannot find the user"
    FILE_NOT_SENT = "cannot find a file in the request"
    FILE_NOT_PROCESSED = "cannot find the extracted text of the file"
    MODEL_NOT_FOUND = "cannot find the model"
    UNAUTHORIZED = "cannot do this without permission"
    ACCESS_PROHIBITED = "cannot do this: it belongs to somebody else"
    INVALID_TOKEN = "cannot accept the session"  # noqa: S105 - a sentence
    EMPTY_CONTENT = "cannot use empty content"

    def __str__(self) -> str:
        return self.value

    @staticmethod
    def DEFAULT(error: Any = "") -> str:  # noqa: N802 - the peer's name
        """Return a sentence with an error in it."""
        return f"the request failed: {error}" if error else "the request failed"


def make_constants(_gate: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.constants`."""
    return {"TASKS": TASKS, "ERROR_MESSAGES": ERROR_MESSAGES}
