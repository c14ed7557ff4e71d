"""What a family demands of the messages of a request: data only (gatewayd-dialects(7), REASONING)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gatewayd.completions.call_ids import CallIdForm


class SystemPlace(StrEnum):
    """Where a family takes instructions."""

    ANY = "any"
    # In one message at the start; later ones become texts of the user.
    FIRST = "first"


class LastTurn(StrEnum):
    """What a family does with a last message of the assistant, the beginning of the answer."""

    ANY = "any"
    # It is refused.
    REFUSED = "refused"
    # It needs `prefix: true`.
    MARKED = "marked"


class ReasoningPlace(StrEnum):
    """Where a family takes its own earlier reasoning."""

    # In the fields that the caller chose.
    ANY = "any"
    # Nowhere: its fields are an error.
    NONE = "none"
    # In these fields of a message.
    CONTENT = "reasoning_content"
    REASONING = "reasoning"
    # In parts of the type `thinking`.
    PARTS = "thinking"
    # In the text, between `<think>` and `</think>`.
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class MessageRules:
    """What a family demands of messages; the default demands nothing.

    With `pairs_calls` each call has one result, directly after its message, and each result a call. With
    `takes_calls` false, or with `needs_tools` in a request without tools, calls and results become texts.
    With `drops_empty` there are no empty texts. With `alternates` the user and the assistant take turns, the
    user first. With `separates_results` no message of the user follows a result, with `splits_calls` a
    message has either a text or calls.

    With `demands_reasoning` messages with calls must have reasoning. `takes_details` tells whether
    `reasoning_details` are taken. `unsigned_mark` is the maker's own word in place of the signature of calls
    that another model made ("" if none is needed). `members` and `call_members` are the members of messages
    and calls that are taken (None: any).
    """

    system: SystemPlace = SystemPlace.ANY
    call_ids: CallIdForm = CallIdForm.ANY
    last: LastTurn = LastTurn.ANY
    reasoning: ReasoningPlace = ReasoningPlace.ANY
    pairs_calls: bool = False
    takes_calls: bool = True
    needs_tools: bool = False
    drops_empty: bool = False
    alternates: bool = False
    separates_results: bool = False
    splits_calls: bool = False
    demands_reasoning: bool = False
    takes_details: bool = True
    unsigned_mark: str = ""
    members: frozenset[str] | None = None
    call_members: frozenset[str] | None = None


NO_MESSAGE_RULES: Final = MessageRules()
"""The rules of a family that demands nothing."""
