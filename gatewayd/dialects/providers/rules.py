"""What one family of models takes: data only; `gatewayd.dialects.providers.adaptation` applies it.

Other modules of this package hold a table of `Rules` for each maker.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from gatewayd.dialects.providers.message_rules import NO_MESSAGE_RULES, MessageRules

EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""The words of `reasoning_effort`, from no reasoning to the most."""

SAMPLING_FIELDS: Final = frozenset(
    {"temperature", "top_p", "presence_penalty", "frequency_penalty"}
    | {"logit_bias", "logprobs", "top_logprobs", "top_k", "min_p"}
)
"""The fields that choose among the likely tokens."""

RESTING_FIELDS: Final = frozenset({"temperature", "top_p", "logprobs"})
"""The sampling fields that remain for `Sampling.WITHOUT_EFFORT`."""

REASONING_FIELDS: Final = frozenset(
    {"reasoning_effort", "reasoning", "thinking", "output_config", "enable_thinking", "thinking_budget"}
)
"""The fields in which clients of all protocols ask for reasoning."""

LIMIT_FIELDS: Final = frozenset({"max_tokens", "max_completion_tokens"})
TOOL_FIELDS: Final = frozenset({"tool_choice", "parallel_tool_calls"})
"""Fields that some makers refuse in a request without tools."""


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
    # `thinking: {"type": "enabled" | "disabled"}`, and the word if the family has words.
    TYPE = "thinking"
    # `enable_thinking: bool`, `thinking_budget: TOKENS`.
    SWITCH = "enable_thinking"
    # `reasoning: {"effort": WORD}`.
    OBJECT = "reasoning"
    # `chat_template_kwargs: {"enable_thinking": false}` for none, else the word.
    TEMPLATE = "chat_template_kwargs"
    # The source converts the fields itself.
    NATIVE = "native"


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
class Rules:
    """What a family takes in the chat protocol; the default takes everything.

    `title` names the family in warnings, `protocol` is how it is reached. `instructions` is the role of
    instructions ("" keeps the caller's).

    `renames` maps names of fields to those of the family. `known`, if not empty, are all fields it takes;
    `dropped` are fields it refuses, `dropped_tool_fields` those of the `function` of a tool. `ranges` clamp
    numbers; a field with another value than its `values` is left out. `max_output` is the most tokens of an
    answer, `max_stop` the most stop sequences; 0 for no limit.

    `efforts` are the words of effort that it takes (None: any), `default_effort` the one without a word (""
    if that is unknown, "none" if it does not reason then). One that `always_thinks` has no switch for it.
    `has_tools_with_effort` is whether it takes tools while it reasons. `thinking_types` are those of the
    Anthropic protocol (None: any), `resting_effort` the highest word beside disabled thinking ("": any).

    `tool_choices` are the forms of `tool_choice` that it takes (None: any): auto, none, required, named;
    `required_word` is its word for required. With `needs_tools` that and `parallel_tool_calls` are refused
    without tools. `response_formats` are the types of `response_format` (None: any). With `strict_schemas` a
    strict schema must follow the rules of OpenAI. With `thinks_in_streams` it thinks in streams alone.
    `messages` are applied by `gatewayd.dialects.providers.history`.
    """

    title: str = ""
    protocol: Protocol = Protocol.CHAT
    instructions: str = ""
    renames: Mapping[str, str] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    dropped_tool_fields: frozenset[str] = frozenset()
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    values: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    max_output: int = 0
    max_stop: int = 0
    efforts: tuple[str, ...] | None = None
    default_effort: str = ""
    always_thinks: bool = False
    thinking: ThinkingForm = ThinkingForm.EFFORT
    thinking_types: tuple[str, ...] | None = None
    resting_effort: str = ""
    sampling: Sampling = Sampling.TAKEN
    has_tools_with_effort: bool = True
    tool_choices: frozenset[str] | None = None
    required_word: str = "required"
    needs_tools: bool = False
    response_formats: frozenset[str] | None = None
    strict_schemas: bool = False
    images: ImageForm = ImageForm.ANY
    thinks_in_streams: bool = False
    messages: MessageRules = NO_MESSAGE_RULES
    touched: frozenset[str] = field(init=False, compare=False, repr=False)
    """The fields that need a look; a request without them and with known fields only stays as it is."""

    def __post_init__(self) -> None:
        """Work out which fields need a look."""
        touched = self.dropped | self.renames.keys() | self.ranges.keys() | self.values.keys()
        if self.thinking is not ThinkingForm.NATIVE:
            touched |= REASONING_FIELDS
        if self.max_output:
            touched |= LIMIT_FIELDS
        if self.max_stop:
            touched |= {"stop"}
        if self.sampling is not Sampling.TAKEN:
            touched |= SAMPLING_FIELDS
        if self.tool_choices is not None or self.needs_tools:
            touched |= TOOL_FIELDS | {"tools"}
        if self.dropped_tool_fields or self.strict_schemas or not self.has_tools_with_effort:
            touched |= {"tools"}
        if self.response_formats is not None or self.strict_schemas:
            touched |= {"response_format"}
        object.__setattr__(self, "touched", frozenset(touched))

    def may_change_fields(self, body: Mapping[str, Any]) -> bool:
        """Return False if no rule is about a field of a request."""
        if not self.touched.isdisjoint(body) or self.thinks_in_streams:
            return True
        return bool(self.known) and not self.known.issuperset(body)

    @property
    def changes_messages(self) -> bool:
        """Whether a rule is about messages."""
        return bool(self.instructions) or self.images is not ImageForm.ANY


NO_RULES: Final = Rules()
"""The rules of a family that nothing is known about: a request is not changed."""

CONVERTED_RULES: Final = Rules(title="this provider", efforts=EFFORTS[:5])
"""The rules for a request of another protocol to such a family: the words that most providers know."""


@dataclass(frozen=True, slots=True)
class FamilyRow:
    """One row of the table of a maker: the families whose canonical name matches `pattern` as a whole."""

    pattern: str
    rules: Rules
