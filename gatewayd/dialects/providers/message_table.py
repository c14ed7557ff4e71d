"""What each maker demands of messages: the table of gatewayd-dialects(7), REASONING, as data."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

from gatewayd.completions.call_ids import CallIdForm
from gatewayd.dialects.providers.family import Family
from gatewayd.dialects.providers.message_rules import (
    NO_MESSAGE_RULES,
    LastTurn,
    MessageRules,
    ReasoningPlace,
    SystemPlace,
)

PLAIN_MEMBERS: Final = frozenset({"name", "tool_calls", "tool_call_id"})
"""Members of a message, besides its role and content, that every maker takes."""

_NO_MEMBERS: Final[frozenset[str]] = frozenset()

_OPENAI: Final = MessageRules(
    call_ids=CallIdForm.SHORT,
    reasoning=ReasoningPlace.NONE,
    pairs_calls=True,
    takes_details=False,
    members=PLAIN_MEMBERS | {"refusal", "audio", "function_call", "annotations"},
    call_members=frozenset({"custom"}),
)

_ANTHROPIC: Final = MessageRules(call_ids=CallIdForm.WORD, pairs_calls=True, drops_empty=True)

_DEMANDING: Final = MessageRules(
    reasoning=ReasoningPlace.CONTENT,
    pairs_calls=True,
    drops_empty=True,
    demands_reasoning=True,
    takes_details=False,
)

_MISTRAL: Final = MessageRules(
    system=SystemPlace.FIRST,
    call_ids=CallIdForm.NINE,
    last=LastTurn.MARKED,
    reasoning=ReasoningPlace.NONE,
    pairs_calls=True,
    drops_empty=True,
    separates_results=True,
    splits_calls=True,
    takes_details=False,
    members=PLAIN_MEMBERS | {"prefix"},
    call_members=_NO_MEMBERS,
)

_STRICT: Final = MessageRules(
    reasoning=ReasoningPlace.NONE,
    pairs_calls=True,
    takes_details=False,
    members=PLAIN_MEMBERS,
    call_members=_NO_MEMBERS,
)

_GEMINI: Final = MessageRules(
    reasoning=ReasoningPlace.NONE,
    pairs_calls=True,
    drops_empty=True,
    takes_details=False,
    members=PLAIN_MEMBERS | {"extra_content"},
    call_members=frozenset({"extra_content"}),
)

SKIP_SIGNATURE: Final = "skip_thought_signature_validator"
"""The maker's documented word for calls of other models, which have no signature of Gemini."""

_CONTENT: Final = MessageRules(
    reasoning=ReasoningPlace.CONTENT, pairs_calls=True, drops_empty=True, takes_details=False
)

MAKERS: Final[Mapping[str, MessageRules]] = {
    "openai": _OPENAI,
    "azure": _OPENAI,
    "anthropic": _ANTHROPIC,
    "deepseek": _DEMANDING,
    "kimi": _DEMANDING,
    "dashscope": _CONTENT,
    "zai": _CONTENT,
    "xai": _CONTENT,
    "mistral": _MISTRAL,
    "groq": _STRICT,
    "cerebras": _STRICT,
    "cohere": _STRICT,
    "minimax": MessageRules(system=SystemPlace.FIRST, pairs_calls=True),
    "fireworks": MessageRules(
        reasoning=ReasoningPlace.CONTENT,
        pairs_calls=True,
        takes_details=False,
        members=PLAIN_MEMBERS | {"reasoning_content"},
        call_members=_NO_MEMBERS,
    ),
    "openrouter": MessageRules(reasoning=ReasoningPlace.REASONING, pairs_calls=True),
    "gemini": _GEMINI,
    "perplexity": MessageRules(
        system=SystemPlace.FIRST,
        last=LastTurn.REFUSED,
        reasoning=ReasoningPlace.NONE,
        takes_calls=False,
        drops_empty=True,
        alternates=True,
        takes_details=False,
        members=PLAIN_MEMBERS,
    ),
    "bedrock": MessageRules(
        call_ids=CallIdForm.WORD,
        last=LastTurn.REFUSED,
        pairs_calls=True,
        needs_tools=True,
        drops_empty=True,
    ),
    "vllm": MessageRules(system=SystemPlace.FIRST, reasoning=ReasoningPlace.REASONING),
    "llamacpp": MessageRules(system=SystemPlace.FIRST),
    "lmstudio": MessageRules(system=SystemPlace.FIRST),
}
"""The rules by maker, before what `find_history_rules` adds for single families."""

_SIGNING_GEMINI: Final = re.compile(r"gemini-(?:[3-9]|\d\d)")
_THINKING_MISTRAL: Final = re.compile(r"magistral|mistral-(?:small|medium)")
_PREFILLED_CLAUDE: Final = re.compile(
    r"claude-(?:[123](?:[-.]|$)|instant|(?:opus|sonnet|haiku)-4(?:-[015])?$|sonnet-4-6$)"
)


_SIGNING: Final = replace(_GEMINI, unsigned_mark=SKIP_SIGNATURE)
_THINKING: Final = replace(_MISTRAL, reasoning=ReasoningPlace.PARTS)
_TAGGED: Final = replace(_STRICT, reasoning=ReasoningPlace.TEXT)
_LATE_CLAUDE: Final = replace(_ANTHROPIC, last=LastTurn.REFUSED)


def find_history_rules(family: Family) -> MessageRules:
    """Return the rules for the messages of a family; `NO_MESSAGE_RULES` if nothing is known about it."""
    maker, name = family.maker, family.name
    match maker:
        case "" if family.origin == "openai":
            return _OPENAI
        case "gemini" | "vertex" if family.origin == "gemini":
            return _SIGNING if _SIGNING_GEMINI.match(name) else _GEMINI
        case "mistral" if _THINKING_MISTRAL.match(name):
            return _THINKING
        case "azure" if family.origin == "mistral":
            return _MISTRAL
        case "cerebras" if "glm" in name:
            return _TAGGED
        case "anthropic" if family.origin == "anthropic" and not _PREFILLED_CLAUDE.match(name):
            return _LATE_CLAUDE
        case _:
            return MAKERS.get(maker, NO_MESSAGE_RULES)


@lru_cache
def with_details(rules: MessageRules) -> MessageRules:
    """Return the rules for requests that are converted to a protocol with a place for `reasoning_details`."""
    return replace(rules, reasoning=ReasoningPlace.ANY, takes_details=True, members=None)
