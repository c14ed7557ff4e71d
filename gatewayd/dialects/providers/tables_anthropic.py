"""What the families of Anthropic take beyond what the list of models of the API tells; data only.

The words of effort, the types of thinking and the longest answer of the list go before those of this table.
"""

from dataclasses import replace
from typing import Final

from gatewayd.dialects.providers.rules import FamilyRow, Rules, Sampling, ThinkingForm
from gatewayd.dialects.providers.tables_openai import ENGINE_FIELDS, OPENAI_FIELDS

UNKNOWN_TO_CLAUDE: Final = frozenset(
    {"logprobs", "top_logprobs", "seed", "presence_penalty", "frequency_penalty", "logit_bias", "min_p"}
)
"""Sampling fields that the messages protocol does not have."""

BASE: Final = Rules(
    title="Claude",
    ranges={"temperature": (0, 1), "top_p": (0, 1)},
    default_effort="none",
)
BUDGET: Final = replace(BASE, efforts=(), thinking_types=("enabled", "disabled"))
BOTH: Final = replace(BASE, thinking_types=("adaptive", "enabled", "disabled"))
ADAPTIVE: Final = replace(
    BASE,
    efforts=("low", "medium", "high", "xhigh", "max"),
    thinking_types=("adaptive", "disabled"),
    sampling=Sampling.REFUSED,
    max_output=128_000,
)
AUTO_CHOICES: Final = frozenset({"auto", "none"})


def _row(pattern: str, title: str, rules: Rules, max_output: int) -> FamilyRow:
    return FamilyRow(pattern, replace(rules, title=title, max_output=max_output))


ROWS: Final = (
    _row(r"claude-3-(haiku|opus|sonnet).*", "Claude 3", BUDGET, 4_096),
    _row(r"claude-3-5-.*", "Claude 3.5", BUDGET, 8_192),
    _row(r"claude-3-7-.*", "Claude 3.7", BUDGET, 64_000),
    _row(r"claude-opus-4(-[01])?", "Claude Opus 4 and 4.1", BUDGET, 32_000),
    _row(r"claude-(sonnet-4(-0|-5)?|haiku-4-5)", "Claude Sonnet and Haiku 4 to 4.5", BUDGET, 64_000),
    _row(
        r"claude-opus-4-5",
        "Claude Opus 4.5",
        replace(BUDGET, efforts=("low", "medium", "high")),
        64_000,
    ),
    _row(
        r"claude-(opus|sonnet)-4-6",
        "Claude 4.6",
        replace(BOTH, efforts=("low", "medium", "high", "max")),
        128_000,
    ),
    _row(r"claude-opus-4-[78]", "Claude Opus 4.7 and 4.8", ADAPTIVE, 128_000),
    _row(r"claude-sonnet-5", "Claude Sonnet 5", replace(ADAPTIVE, default_effort="high"), 128_000),
    _row(
        r"claude-(fable|mythos)-.*",
        "Claude Fable and Mythos",
        replace(ADAPTIVE, tool_choices=AUTO_CHOICES),
        128_000,
    ),
    _row(r"claude-.*", "Claude Opus 5 and newer", replace(ADAPTIVE, resting_effort="high"), 128_000),
    FamilyRow(r".*", replace(BASE)),
)
"""The families at Anthropic, and behind servers of the messages protocol."""

PROXIED_ROWS: Final = tuple(
    FamilyRow(
        row.pattern,
        Rules(
            title=row.rules.title,
            ranges=row.rules.ranges,
            sampling=row.rules.sampling,
            tool_choices=None if row.rules.tool_choices is None else row.rules.tool_choices,
        ),
    )
    for row in ROWS[:-1]
)
"""The same for servers of the chat protocol, which convert thinking and effort themselves."""

CHAT_TO_MESSAGES: Final = Rules(
    title="the messages protocol",
    thinking=ThinkingForm.NATIVE,
    dropped=UNKNOWN_TO_CLAUDE | OPENAI_FIELDS - {"metadata", "service_tier"} | ENGINE_FIELDS - {"top_k"},
)
"""The fields of a chat request that the messages protocol has no counterpart for."""
