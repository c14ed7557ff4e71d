"""What one family of models takes: data only; `gatewayd.dialects.providers.adaptation` applies it.

Other modules of this package hold a table of `Rules` for each maker.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""The words of `reasoning_effort`, from no reasoning to the most."""

SAMPLING_FIELDS: Final = frozenset(
    {"temperature", "top_p", "presence_penalty", "frequency_penalty"}
    | {"logit_bias", "logprobs", "top_logprobs", "top_k", "min_p"}
)
"""The fields that choose among the likely tokens."""


class Sampling(StrEnum):
    """When a family takes the sampling fields."""

    TAKEN = "taken"
    # Each of them is an error, whatever its value.
    REFUSED = "refused"
    # Only temperature, top_p and logprobs, and only while the effort is none.
    WITHOUT_EFFORT = "without effort"


class ThinkingForm(StrEnum):
    """How a request asks a family for more or less reasoning."""

    # `reasoning_effort: WORD`.
    EFFORT = "reasoning_effort"
    # `thinking: {"type": "enabled" | "disabled"}`.
    TYPE = "thinking"
    # `enable_thinking: bool`, `thinking_budget: TOKENS`.
    SWITCH = "enable_thinking"
    # `reasoning: {"effort": WORD}`.
    OBJECT = "reasoning"
    # `chat_template_kwargs: {"enable_thinking": bool}`.
    TEMPLATE = "chat_template_kwargs"
    # Not at all.
    NONE = "none"


class Protocol(StrEnum):
    """The protocol in which the gateway reaches a family."""

    CHAT = "chat"
    RESPONSES = "responses"
    # Chat completions, but Responses as soon as the request has tools.
    RESPONSES_WITH_TOOLS = "responses_with_tools"


class ImageForm(StrEnum):
    """The pictures that a family takes."""

    ANY = "any"
    # Pictures in the request itself; no addresses.
    DATA = "data"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class MessageRules:
    """What a family demands of the messages of a request; see `gatewayd.dialects.providers.history`."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a family takes in the chat protocol; the default takes everything.

    `title` names the family in warnings. `renames` maps names of fields to those of the family. `known`, if
    not empty, are all fields that it takes; `dropped` are fields it refuses, `dropped_with_effort` those that
    it refuses unless the effort is none. `ranges` clamp numbers, `values` are the only ones a field may have.

    `efforts` are the words of effort that it takes (None: any), `default_effort` the one without a word
    ("" if that is unknown, "none" if it does not reason then).

    `tool_choices` are the forms of `tool_choice` that it takes (None: any): auto, none, required, named;
    `required_word` is its word for required. `response_formats` are the types of `response_format`. With
    `strict_schemas` a strict schema must follow the rules of OpenAI. `dropped_tool_fields` are fields of the
    `function` of a tool. `instructions` is the role of instructions ("" keeps the caller's).
    """

    title: str = ""
    protocol: Protocol = Protocol.CHAT
    renames: Mapping[str, str] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    dropped_with_effort: frozenset[str] = frozenset()
    ranges: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    values: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    max_output: int = 0
    max_stop: int = 0
    efforts: tuple[str, ...] | None = None
    default_effort: str = ""
    thinking: ThinkingForm = ThinkingForm.EFFORT
    sampling: Sampling = Sampling.TAKEN
    has_tools_with_effort: bool = True
    tool_choices: frozenset[str] | None = None
    required_word: str = "required"
    response_formats: frozenset[str] | None = None
    strict_schemas: bool = False
    dropped_tool_fields: frozenset[str] = frozenset()
    instructions: str = ""
    images: ImageForm = ImageForm.ANY
    has_cache_control: bool = False
    stream_thinking_only: bool = False
    messages: MessageRules = field(default_factory=MessageRules)


NO_RULES: Final = Rules()
"""The rules of a family that nothing is known about: a request is not changed."""
