"""Implementation of `open_webui.constants`: task names and error sentences."""

from enum import Enum
from typing import Any

from gatewayd.plugins.open_webui.host_bridge import HostBridge


class TASKS(str, Enum):  # noqa: UP042 - members are used as str
    """Names of tasks, as in `__task__`."""

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


class ERROR_MESSAGES(str, Enum):  # noqa: N801, UP042 - name of Open WebUI
    """Error sentences."""

    NOT_FOUND = "cannot find the object"
    USER_NOT_FOUND = "cannot find the user"
    FILE_NOT_SENT = "cannot find a file in the request"
    FILE_NOT_PROCESSED = "cannot find the extracted text of the file"
    MODEL_NOT_FOUND = "cannot find the model"
    UNAUTHORIZED = "cannot do this without permission"
    ACCESS_PROHIBITED = "cannot access the object: it belongs to another user"
    INVALID_TOKEN = "cannot accept the session"  # noqa: S105 - a sentence
    EMPTY_CONTENT = "cannot use empty content"

    def __str__(self) -> str:
        return self.value

    @staticmethod
    def DEFAULT(error: Any = "") -> str:  # noqa: N802 - name of Open WebUI
        """Return the sentence for an unexpected error."""
        return f"the request failed: {error}" if error else "the request failed"


def make_constants(_bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.constants`."""
    return {"TASKS": TASKS, "ERROR_MESSAGES": ERROR_MESSAGES}
