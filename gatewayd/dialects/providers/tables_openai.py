"""What the families of OpenAI take, at OpenAI, at Azure and behind other servers; data only.

The first matching row counts. Fields that only OpenAI has, which other makers refuse, are OPENAI_FIELDS.
"""

from dataclasses import replace
from typing import Final

from gatewayd.dialects.providers.rules import EFFORTS, FamilyRow, Protocol, Rules, Sampling

OPENAI_FIELDS: Final = frozenset(
    {"verbosity", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "safety_identifier"}
    | {"moderation", "web_search_options", "prediction", "audio", "modalities", "store", "metadata"}
    | {"service_tier"}
)
"""Fields that only OpenAI and Azure know."""

ENGINE_FIELDS: Final = frozenset(
    {"top_k", "min_p", "typical_p", "top_a", "tfs_z", "repeat_penalty", "repetition_penalty", "repeat_last_n"}
    | {"mirostat", "mirostat_eta", "mirostat_tau", "options", "keep_alive", "think", "num_ctx", "num_predict"}
    | {"chat_template_kwargs", "random_seed", "safe_prompt", "reasoning_format", "extra_body"}
)
"""Fields of other engines and makers, which OpenAI refuses."""

LIMIT: Final = {"max_tokens": "max_completion_tokens"}

BASE: Final = Rules(
    title="OpenAI",
    renames=LIMIT,
    dropped=ENGINE_FIELDS,
    ranges={"temperature": (0, 2), "top_p": (0, 1)},
    max_stop=4,
    needs_tools=True,
    strict_schemas=True,
)

PLAIN: Final = replace(
    BASE,
    instructions="system",
    efforts=(),
    default_effort="none",
    values={"service_tier": ("auto", "default", "priority", "fast")},
)

REASONING: Final = replace(BASE, instructions="developer", sampling=Sampling.REFUSED, default_effort="medium")

NO_TIER: Final = {"service_tier": ("auto", "default")}
LOW_TO_HIGH: Final = EFFORTS[2:5]
NONE_TO_HIGH: Final = ("none", *LOW_TO_HIGH)
NONE_TO_XHIGH: Final = ("none", *EFFORTS[2:6])
NONE_TO_MAX: Final = ("none", *EFFORTS[2:])

WITHOUT: Final = replace(REASONING, sampling=Sampling.WITHOUT_EFFORT, default_effort="none")

TOOLS_AT_REST: Final = replace(
    WITHOUT,
    default_effort="medium",
    has_tools_with_effort=False,
    protocol=Protocol.RESPONSES_WITH_TOOLS,
)


def _titled(pattern: str, title: str, rules: Rules) -> FamilyRow:
    return FamilyRow(pattern, replace(rules, title=title))


ROWS: Final = (
    _titled(
        r"gpt-4o(-mini)?-search-preview",
        "gpt-4o-search-preview",
        replace(PLAIN, sampling=Sampling.REFUSED, dropped=PLAIN.dropped | {"n", "parallel_tool_calls"}),
    ),
    _titled(r"gpt-5-chat|chatgpt-.*", "gpt-5-chat", replace(PLAIN, values=NO_TIER)),
    _titled(
        r"gpt-5\.[123]-chat",
        "gpt-5.1 to 5.3-chat",
        replace(REASONING, efforts=("medium",), values=NO_TIER),
    ),
    _titled(r"gpt-3\.5.*|gpt-4o.*|gpt-4\.1.*|gpt-4\.5.*|gpt-4(-.*)?", "gpt-3.5 and gpt-4", PLAIN),
    _titled(
        r"o1-(mini|preview)",
        "o1-mini",
        replace(
            REASONING,
            instructions="user",
            efforts=(),
            dropped=REASONING.dropped | {"parallel_tool_calls", "tools", "tool_choice", "response_format"},
            values=NO_TIER,
        ),
    ),
    _titled(
        r"o1(-pro)?|o3-mini",
        "o1 and o3-mini",
        replace(
            REASONING,
            efforts=LOW_TO_HIGH,
            dropped=REASONING.dropped | {"parallel_tool_calls"},
            values=NO_TIER,
        ),
    ),
    _titled(
        r"o[34](-.*)?",
        "o3 and o4-mini",
        replace(REASONING, efforts=LOW_TO_HIGH, dropped=REASONING.dropped | {"stop"}),
    ),
    _titled(
        r"gpt-5-pro",
        "gpt-5-pro",
        replace(
            REASONING,
            efforts=("high",),
            default_effort="high",
            dropped=REASONING.dropped | {"stop"},
            protocol=Protocol.RESPONSES,
        ),
    ),
    _titled(
        r"gpt-5-nano",
        "gpt-5-nano",
        replace(
            REASONING,
            efforts=EFFORTS[1:5],
            dropped=REASONING.dropped | {"stop"},
            values={"service_tier": ("auto", "default", "flex")},
        ),
    ),
    _titled(
        r"gpt-5(-mini|-codex.*)?",
        "gpt-5",
        replace(REASONING, efforts=EFFORTS[1:5], dropped=REASONING.dropped | {"stop"}),
    ),
    _titled(r"gpt-5\.1-codex.*", "gpt-5.1-codex", replace(REASONING, efforts=LOW_TO_HIGH)),
    _titled(
        r"gpt-5\.2-pro",
        "gpt-5.2-pro",
        replace(REASONING, efforts=EFFORTS[3:6], protocol=Protocol.RESPONSES),
    ),
    _titled(r"gpt-5\.1(-mini)?", "gpt-5.1", replace(WITHOUT, efforts=NONE_TO_HIGH)),
    _titled(r"gpt-5\.[23](-codex.*|-mini)?", "gpt-5.2 and 5.3", replace(WITHOUT, efforts=NONE_TO_XHIGH)),
    _titled(
        r"gpt-5\.[456]-pro",
        "gpt-5.4 to 5.6-pro",
        replace(REASONING, efforts=EFFORTS[3:6], protocol=Protocol.RESPONSES),
    ),
    _titled(
        r"gpt-5\.4.*",
        "gpt-5.4",
        replace(TOOLS_AT_REST, efforts=NONE_TO_XHIGH, default_effort="none"),
    ),
    _titled(r"gpt-5\.5.*", "gpt-5.5", replace(TOOLS_AT_REST, efforts=NONE_TO_XHIGH)),
    _titled(r"gpt-5\.[6-9].*", "gpt-5.6", replace(TOOLS_AT_REST, efforts=NONE_TO_MAX)),
    _titled(
        r"gpt-6\.1-sol",
        "gpt-6.1-sol",
        replace(
            REASONING,
            efforts=EFFORTS[2:6],
            has_tools_with_effort=False,
            protocol=Protocol.RESPONSES_WITH_TOOLS,
        ),
    ),
    _titled(
        r"gpt-6-astra",
        "gpt-6-astra",
        replace(
            REASONING,
            efforts=EFFORTS[2:],
            has_tools_with_effort=False,
            protocol=Protocol.RESPONSES_WITH_TOOLS,
        ),
    ),
    _titled(r"gpt-6.*", "gpt-6", replace(TOOLS_AT_REST, efforts=NONE_TO_MAX)),
    FamilyRow(r".*", BASE),
)
"""The families at OpenAI."""


def _proxied(row: FamilyRow) -> FamilyRow:
    """Return the row for a server of an unknown maker, which may lack Responses and the newer limit."""
    rules = replace(row.rules, protocol=Protocol.CHAT)
    return FamilyRow(row.pattern, replace(rules, renames={}) if rules.sampling is Sampling.TAKEN else rules)


PROXIED_ROWS: Final = tuple(map(_proxied, ROWS[:-1]))
"""The families behind a server whose maker is unknown."""

UNKNOWN_DEPLOYMENT: Final = Rules(
    title="Azure", renames=LIMIT, dropped=ENGINE_FIELDS, needs_tools=True, max_stop=4, strict_schemas=True
)

AZURE_ROWS: Final = (
    FamilyRow(
        r"(mistral|ministral|codestral|magistral).*",
        Rules(
            title="Mistral at Azure",
            renames={"max_completion_tokens": "max_tokens"},
            dropped=OPENAI_FIELDS | ENGINE_FIELDS,
            instructions="system",
            efforts=(),
            default_effort="none",
        ),
    ),
    FamilyRow(
        r"(deepseek|grok|llama|meta-|phi|cohere|command|kimi|qwen|glm|jais).*",
        Rules(
            title="models of other makers at Azure",
            renames={"max_completion_tokens": "max_tokens"},
            dropped=OPENAI_FIELDS | (ENGINE_FIELDS - {"top_k", "min_p"}),
            instructions="system",
        ),
    ),
    *(FamilyRow(row.pattern, replace(row.rules)) for row in ROWS[:-1]),
    FamilyRow(r".*", UNKNOWN_DEPLOYMENT),
)
"""The families at Azure, by the name of the deployment unless a record names the family."""
