"""The `[[provider_rules]]` tables: changes of what the requests for some models may contain."""

import math
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from gatewayd.settings.types import ExpectedValue, Line

MAX_RULE_NAMES: Final = 100
"""Maximum number of names in a list, or of entries in a table."""

MAX_RULE_NAME_CHARACTERS: Final = 100

EFFORT_WORDS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def _names(value: Any) -> Any:
    if not isinstance(value, list | tuple) or len(value) > MAX_RULE_NAMES or not all(map(_is_name, value)):
        raise ValueError("not a list of names")
    return tuple(value)


def _table(is_member: Callable[[Any], bool]) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not isinstance(value, dict) or len(value) > MAX_RULE_NAMES:
            raise ValueError("not a table")
        if not all(_is_name(name) and is_member(member) for name, member in value.items()):
            raise ValueError("not a table of such members")
        return value

    return check


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_RULE_NAME_CHARACTERS


def _is_range(value: Any) -> bool:
    is_pair = isinstance(value, list | tuple) and len(value) == 2 and all(map(_is_number, value))
    return is_pair and value[0] <= value[1]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_list(value: Any) -> bool:
    is_short = isinstance(value, list | tuple) and len(value) <= MAX_RULE_NAMES
    return is_short and all(isinstance(item, str | bool) or _is_number(item) for item in value)


Names = Annotated[tuple[str, ...] | None, BeforeValidator(_names), ExpectedValue("a list of names")]
Renames = Annotated[
    dict[str, str] | None,
    BeforeValidator(_table(_is_name)),
    ExpectedValue("a table of names and their new names"),
]
Ranges = Annotated[
    dict[str, Any] | None,
    BeforeValidator(_table(_is_range)),
    ExpectedValue("a table of names and pairs of numbers, the smaller one first"),
]
Values = Annotated[
    dict[str, Any] | None,
    BeforeValidator(_table(_is_list)),
    ExpectedValue("a table of names and lists of values"),
]
EffortWord = Annotated[
    Literal["", "none", "minimal", "low", "medium", "high", "xhigh", "max"] | None,
    ExpectedValue(f'one of {", ".join(EFFORT_WORDS)} or ""'),
]
Efforts = Annotated[
    tuple[Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"], ...] | None,
    Field(strict=False),
    ExpectedValue(f"a list of {', '.join(EFFORT_WORDS)}"),
]
Thinking = Annotated[
    Literal["reasoning_effort", "thinking", "enable_thinking", "reasoning", "chat_template_kwargs", "native"]
    | None,
    ExpectedValue(
        '"reasoning_effort", "thinking", "enable_thinking", "reasoning", "chat_template_kwargs" or "native"'
    ),
]
SamplingRule = Annotated[
    Literal["taken", "refused", "without effort"] | None,
    ExpectedValue('"taken", "refused" or "without effort"'),
]
Choices = Annotated[
    tuple[Literal["auto", "none", "required", "named"], ...] | None,
    Field(strict=False),
    ExpectedValue("a list of auto, none, required, named"),
]
Formats = Annotated[
    tuple[Literal["text", "json_object", "json_schema"], ...] | None,
    Field(strict=False),
    ExpectedValue("a list of text, json_object, json_schema"),
]
Role = Annotated[
    Literal["", "system", "developer", "user"] | None, ExpectedValue('"system", "developer", "user" or ""')
]
Pictures = Annotated[Literal["any", "data", "none"] | None, ExpectedValue('"any", "data" or "none"')]
UpstreamWord = Annotated[
    Literal["chat", "responses", "responses_with_tools"] | None,
    ExpectedValue('"chat", "responses" or "responses_with_tools"'),
]
SystemWord = Annotated[Literal["any", "first"] | None, ExpectedValue('"any" or "first"')]
CallIdWord = Annotated[
    Literal["any", "short", "word", "nine"] | None, ExpectedValue('"any", "short", "word" or "nine"')
]
LastWord = Annotated[
    Literal["any", "refused", "marked"] | None, ExpectedValue('"any", "refused" or "marked"')
]
ReasoningWord = Annotated[
    Literal["any", "none", "reasoning_content", "reasoning", "thinking", "text"] | None,
    ExpectedValue('"any", "none", "reasoning_content", "reasoning", "thinking" or "text"'),
]
Flag = Annotated[bool | None, ExpectedValue("true or false")]
Count = Annotated[int | None, ExpectedValue("a whole number, 0 for no limit")]


class ProviderRule(BaseModel):
    """One `[[provider_rules]]` table. None means that the table of gatewayd-dialects(7) holds."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    provider: Line = Field("", description="Name of the provider; every provider when empty.")
    model: Line = Field(
        "*",
        min_length=1,
        max_length=256,
        description="Family or id of the models at the provider; * stands for any text.",
    )
    drop: Names = Field(None, description="Fields to leave out of requests.")
    keep: Names = Field(None, description="Fields to send although the table drops them.")
    rename: Renames = Field(None, description="Fields to send by another name.")
    values: Values = Field(
        None, description="The only values of fields; a field with another one is left out."
    )
    ranges: Ranges = Field(None, description="The smallest and the largest number of fields.")
    drop_tool_fields: Names = Field(
        None, description="Fields to leave out of the functions of tools, such as strict."
    )
    max_output_tokens: Count = Field(
        None, ge=0, description="Maximum number of tokens of an answer; 0 for no limit."
    )
    max_stop: Count = Field(None, ge=0, description="Maximum number of stop sequences; 0 for no limit.")
    efforts: Efforts = Field(None, description="Words of effort that the models take.")
    default_effort: EffortWord = Field(
        None, description="Effort of a request without a word; none if the models do not reason then."
    )
    always_thinks: Flag = Field(None, description="Whether thinking cannot be turned off.")
    thinking: Thinking = Field(None, description="The field that asks for thinking.")
    sampling: SamplingRule = Field(
        None, description="When the models take temperature and the other sampling fields."
    )
    tools_with_effort: Flag = Field(None, description="Whether the models take tools while they reason.")
    tool_choices: Choices = Field(None, description="Forms of tool_choice that the models take.")
    response_formats: Formats = Field(None, description="Types of response_format that the models take.")
    strict_schemas: Flag = Field(None, description="Whether strict schemas must be in the subset of OpenAI.")
    instructions: Role = Field(None, description='Role of instructions; "" leaves that of the caller.')
    images: Pictures = Field(
        None, description="Pictures that the models take: any, only those within requests, or none."
    )
    protocol: UpstreamWord = Field(None, description="Protocol in which the models are reached.")

    system_messages: SystemWord = Field(
        None, description="Where the models take system messages: any place, or one message at the start."
    )
    call_ids: CallIdWord = Field(
        None,
        description="Ids of tool calls that the models take: any, up to 40 characters (short), up to 64"
        " letters, digits, hyphens and underscores (word), or nine letters and digits (nine).",
    )
    last_message: LastWord = Field(
        None,
        description="A last message of the assistant: any, refused, or marked by prefix.",
    )
    own_reasoning: ReasoningWord = Field(
        None,
        description="Where the models take their own earlier reasoning: in these fields, in parts of type"
        " thinking, in the text, as it came (any), or nowhere (none).",
    )
    demand_reasoning: Flag = Field(None, description="Whether messages with tool calls must have reasoning.")
    reasoning_details: Flag = Field(None, description="Whether messages may have reasoning_details.")
    pair_calls: Flag = Field(
        None, description="Whether each tool call needs a result after its message, and each result a call."
    )
    earlier_calls: Flag = Field(
        None, description="Whether the models take tool calls and results; without they become texts."
    )
    calls_need_tools: Flag = Field(
        None, description="Whether the models take calls and results only in requests with tools."
    )
    drop_empty_texts: Flag = Field(None, description="Whether empty texts are left out.")
    alternate_roles: Flag = Field(
        None, description="Whether user and assistant must take turns, the user first."
    )
    separate_results: Flag = Field(
        None, description="Whether no message of the user may follow a result directly."
    )
    split_calls: Flag = Field(None, description="Whether a message has either a text or calls.")
    message_members: Names = Field(
        None, description="The only members of messages besides role and content; others are left out."
    )
    call_members: Names = Field(
        None, description="The only members of tool calls besides id, type and function."
    )

    @property
    def changes(self) -> dict[str, Any]:
        """The changes of the rules, by their names."""
        return self.model_dump(exclude={"provider", "model"}, exclude_none=True, mode="json")
