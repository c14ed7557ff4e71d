"""What other hosted makers take in the chat protocol; data only.

Where two families differ in what cannot be told from outside, the rule is the stricter one.
"""

from dataclasses import replace
from typing import Final

from gatewayd.dialects.providers.rules import EFFORTS, FamilyRow, ImageForm, Rules, ThinkingForm
from gatewayd.dialects.providers.tables_openai import OPENAI_FIELDS

RUNTIME_FIELDS: Final = frozenset(
    {"options", "keep_alive", "think", "num_ctx", "num_predict", "repeat_last_n", "typical_p"}
    | {"mirostat", "mirostat_eta", "mirostat_tau", "repeat_penalty"}
)
"""Fields of local runtimes, which hosted makers do not know."""

TO_LIMIT: Final = {"max_completion_tokens": "max_tokens"}
PENALTIES: Final = frozenset({"presence_penalty", "frequency_penalty"})
NO_NAMED: Final = frozenset({"auto", "none", "required"})
NO_FORCED: Final = frozenset({"auto", "none"})
LOW_TO_HIGH: Final = EFFORTS[2:5]

OTHER: Final = Rules(
    renames=TO_LIMIT,
    dropped=OPENAI_FIELDS | RUNTIME_FIELDS,
    instructions="system",
)

DEEPSEEK: Final = replace(
    OTHER,
    title="DeepSeek",
    thinking=ThinkingForm.TYPE,
    efforts=("high", "max"),
    response_formats=frozenset({"text", "json_object"}),
)

KIMI: Final = replace(
    OTHER,
    title="Kimi",
    thinking=ThinkingForm.TYPE,
    efforts=(),
    dropped=OTHER.dropped | {"top_k", "min_p"},
    dropped_tool_fields=frozenset({"strict"}),
    tool_choices=NO_FORCED,
    values={"temperature": (1, 0.6), "top_p": (0.95, 1), "n": (1,)},
)

DASHSCOPE: Final = replace(
    OTHER,
    title="Qwen",
    thinking=ThinkingForm.SWITCH,
    dropped=OTHER.dropped - {"modalities", "audio"} | {"min_p", "logit_bias"},
)

ZAI: Final = replace(
    OTHER,
    title="GLM",
    thinking=ThinkingForm.TYPE,
    efforts=(),
    tool_choices=frozenset({"auto"}),
    ranges={"temperature": (0, 1), "top_p": (0.01, 1)},
    response_formats=frozenset({"text", "json_object"}),
)

MISTRAL: Final = replace(
    OTHER,
    title="Mistral",
    renames={**TO_LIMIT, "seed": "random_seed"},
    dropped=(OPENAI_FIELDS - {"prediction"})
    | RUNTIME_FIELDS
    | {"user", "logit_bias", "logprobs", "top_logprobs", "top_k", "min_p", "stream_options"},
    ranges={"temperature": (0, 1.5), "top_p": (0, 1)},
    efforts=(),
    default_effort="none",
    tool_choices=NO_NAMED,
    required_word="any",
)

GROQ: Final = replace(
    OTHER,
    title="Groq",
    renames={},
    dropped=(OPENAI_FIELDS - {"service_tier"})
    | RUNTIME_FIELDS
    | {"logit_bias", "logprobs", "top_logprobs", "top_k", "min_p", *PENALTIES},
    values={"n": (1,)},
    max_stop=4,
    efforts=(),
    default_effort="none",
    response_formats=frozenset({"text", "json_object"}),
)

CEREBRAS: Final = replace(
    OTHER,
    title="Cerebras",
    renames={"max_tokens": "max_completion_tokens"},
    dropped=OTHER.dropped | PENALTIES | {"logit_bias", "parallel_tool_calls", "top_k", "min_p"},
    values={"n": (1,)},
    ranges={"temperature": (0, 1.5)},
    max_stop=4,
    efforts=(),
    default_effort="none",
)

XAI: Final = replace(
    OTHER, title="Grok", renames={}, dropped=OTHER.dropped | {"top_k", "min_p", "logit_bias"}
)
XAI_REASONING: Final = replace(XAI, dropped=XAI.dropped | PENALTIES | {"stop"})

GEMINI: Final = Rules(
    title="Gemini",
    instructions="system",
    renames=TO_LIMIT,
    known=frozenset(
        {"model", "messages", "stream", "stream_options", "n", "stop", "temperature", "top_p", "max_tokens"}
        | {"presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "seed", "response_format"}
        | {"tools", "tool_choice", "reasoning_effort", "extra_body", "modalities", "audio", "user"}
        | {"parallel_tool_calls"}
    ),
    dropped=frozenset({"parallel_tool_calls", "user"}),
    dropped_tool_fields=frozenset({"strict"}),
    max_stop=5,
    ranges={"temperature": (0, 2)},
)
GEMINI_3: Final = replace(
    GEMINI, dropped=GEMINI.dropped | PENALTIES | {"logprobs", "top_logprobs"}, always_thinks=True
)

PERPLEXITY: Final = replace(
    OTHER,
    title="Perplexity",
    dropped=(OPENAI_FIELDS - {"web_search_options"})
    | RUNTIME_FIELDS
    | {"tools", "tool_choice", "parallel_tool_calls", "stop", "seed", "n", "top_k", "min_p"}
    | {"logit_bias", "logprobs", "top_logprobs", "user"},
    ranges={"temperature": (0, 1.99)},
    response_formats=frozenset({"text", "json_schema"}),
    efforts=("minimal", *LOW_TO_HIGH),
)

FIREWORKS: Final = replace(
    OTHER,
    title="Fireworks",
    dropped=(OPENAI_FIELDS - {"metadata"}) | (RUNTIME_FIELDS - {"typical_p"}) | {"store"},
)

COHERE: Final = Rules(
    title="Cohere",
    renames={"max_completion_tokens": "max_tokens"},
    known=frozenset(
        {
            "model",
            "messages",
            "stream",
            "stream_options",
            "temperature",
            "top_p",
            "max_tokens",
            "stop",
            "seed",
        }
        | {"frequency_penalty", "presence_penalty", "response_format", "tools", "tool_choice"}
        | {"reasoning_effort"}
    ),
    efforts=("none", "high"),
    tool_choices=frozenset({"none", "required"}),
    ranges={"temperature": (0, 1), "frequency_penalty": (0, 1), "presence_penalty": (0, 1)},
)

MINIMAX: Final = replace(
    OTHER,
    title="MiniMax",
    dropped=OTHER.dropped | {"functions", "function_call"},
    values={"n": (1,)},
    ranges={"temperature": (0.01, 1), "top_p": (0.01, 1)},
    efforts=(),
)


def _row(pattern: str, title: str, rules: Rules) -> FamilyRow:
    return FamilyRow(pattern, replace(rules, title=title))


def _effort_row(pattern: str, title: str, rules: Rules, efforts: tuple[str, ...]) -> FamilyRow:
    default = "none" if not efforts else "medium"
    return FamilyRow(pattern, replace(rules, title=title, efforts=efforts, default_effort=default))


ROWS: Final = {
    "deepseek": (
        _row(
            r"deepseek-(reasoner|v4.*|r1.*)",
            "deepseek-reasoner and v4",
            replace(DEEPSEEK, tool_choices=NO_FORCED),
        ),
        FamilyRow(r".*", DEEPSEEK),
    ),
    "kimi": (
        _row(r"kimi-k2\.[789]-code.*", "kimi-k2.7-code", replace(KIMI, always_thinks=True)),
        _row(r"kimi-k2\.[5-9].*|kimi-k[3-9].*", "kimi-k2.5 and newer", KIMI),
        _row(r"kimi-k2-thinking.*", "kimi-k2-thinking", replace(KIMI, always_thinks=True)),
        _row(r"(kimi|moonshot).*", "Kimi", replace(KIMI, values={"n": (1,)}, ranges={"temperature": (0, 1)})),
        FamilyRow(r".*", replace(KIMI, values={})),
    ),
    "dashscope": (
        _row(r"qwen3?-coder.*", "qwen-coder", replace(DASHSCOPE, tool_choices=NO_FORCED)),
        _row(r"(qwen3.*|qwq.*)-thinking.*|qwq.*", "qwen3-thinking", replace(DASHSCOPE, always_thinks=True)),
        _row(r"qwen3.*", "qwen3", replace(DASHSCOPE, thinks_in_streams=True)),
        FamilyRow(r".*", DASHSCOPE),
    ),
    "zai": (
        _row(
            r"glm-5\.3.*",
            "glm-5.3",
            replace(ZAI, efforts=("low", "high", "max"), default_effort="high", always_thinks=True),
        ),
        _row(r"glm-5\.2.*", "glm-5.2", replace(ZAI, efforts=LOW_TO_HIGH)),
        FamilyRow(r".*", ZAI),
    ),
    "minimax": (FamilyRow(r".*", MINIMAX),),
    "mistral": (
        _row(
            r"mistral-small(-2603)?|mistral-medium-(3|3-5|3\.5)|mistral-medium",
            "mistral-small and medium",
            replace(MISTRAL, efforts=("none", "high")),
        ),
        _row(r"magistral.*", "magistral", replace(MISTRAL, always_thinks=True)),
        FamilyRow(r".*", MISTRAL),
    ),
    "groq": (
        _effort_row(
            r"gpt-oss.*",
            "gpt-oss at Groq",
            replace(GROQ, response_formats=frozenset({"text", "json_object", "json_schema"})),
            LOW_TO_HIGH,
        ),
        _row(
            r"qwen3.*", "qwen3 at Groq", replace(GROQ, efforts=("none", "default"), default_effort="default")
        ),
        _row(
            r"(llama-4|kimi).*",
            "llama-4 and kimi at Groq",
            replace(GROQ, response_formats=frozenset({"text", "json_object", "json_schema"})),
        ),
        FamilyRow(r".*", GROQ),
    ),
    "cerebras": (
        _effort_row(r"gpt-oss.*", "gpt-oss at Cerebras", CEREBRAS, LOW_TO_HIGH),
        _row(r"(zai-)?glm.*", "GLM at Cerebras", replace(CEREBRAS, efforts=("none",), default_effort="")),
        FamilyRow(r".*", CEREBRAS),
    ),
    "xai": (
        _effort_row(r"grok-3-mini.*", "grok-3-mini", XAI_REASONING, ("low", "high")),
        _row(r"grok-4\.20-non-reasoning.*", "grok-4.20-non-reasoning", replace(XAI, efforts=())),
        _row(r"grok-4\.20.*", "grok-4.20", replace(XAI_REASONING, efforts=())),
        _effort_row(r"grok-4\.3.*", "grok-4.3", XAI_REASONING, ("none", *LOW_TO_HIGH)),
        _effort_row(r"grok-4\.[5-9].*", "grok-4.5", XAI_REASONING, LOW_TO_HIGH),
        _row(r"grok-.*non-reasoning.*|grok-[23].*", "grok-3", replace(XAI, efforts=())),
        _row(r"grok-.*", "grok-4", replace(XAI_REASONING, efforts=())),
        FamilyRow(r".*", XAI),
    ),
    "gemini": (
        _effort_row(r"gemini-2\.5-pro.*", "gemini-2.5-pro", GEMINI, LOW_TO_HIGH),
        _effort_row(r"gemini-2\.5.*", "gemini-2.5", GEMINI, ("none", *LOW_TO_HIGH)),
        _row(
            r"gemini-([01]|2\.0).*",
            "gemini-2.0 and older",
            replace(GEMINI, efforts=(), default_effort="none"),
        ),
        _effort_row(r"gemini-3.*-pro.*", "gemini-3-pro", GEMINI_3, LOW_TO_HIGH),
        _effort_row(r"gemini-.*", "gemini-3", GEMINI_3, ("minimal", *LOW_TO_HIGH)),
        FamilyRow(r".*", replace(GEMINI, efforts=())),
    ),
    "openrouter": (
        FamilyRow(
            r".*",
            Rules(
                title="OpenRouter",
                renames=TO_LIMIT,
                dropped=RUNTIME_FIELDS,
                instructions="",
                thinking=ThinkingForm.OBJECT,
                efforts=EFFORTS[:6],
            ),
        ),
    ),
    "perplexity": (FamilyRow(r".*", PERPLEXITY),),
    "together": (FamilyRow(r".*", replace(OTHER, title="Together")),),
    "fireworks": (FamilyRow(r".*", FIREWORKS),),
    "cohere": (FamilyRow(r".*", COHERE),),
}
"""The families of each maker; the first matching row counts."""

ENGINE_ROWS: Final = {
    "vllm": (
        FamilyRow(
            r".*",
            Rules(
                title="vLLM",
                instructions="system",
                thinking=ThinkingForm.TEMPLATE,
                efforts=LOW_TO_HIGH,
                renames={"repeat_penalty": "repetition_penalty"},
                dropped=frozenset({"options", "keep_alive", "think", "store", "metadata", "service_tier"}),
            ),
        ),
    ),
    "sglang": (
        FamilyRow(
            r".*",
            Rules(
                title="SGLang",
                instructions="system",
                thinking=ThinkingForm.TEMPLATE,
                efforts=LOW_TO_HIGH,
                renames={"repeat_penalty": "repetition_penalty"},
                dropped=frozenset({"options", "keep_alive", "think", "store", "metadata", "service_tier"}),
            ),
        ),
    ),
    "llamacpp": (
        FamilyRow(
            r".*",
            Rules(
                title="llama.cpp",
                instructions="system",
                thinking=ThinkingForm.TEMPLATE,
                efforts=LOW_TO_HIGH,
                tool_choices=NO_NAMED,
            ),
        ),
    ),
    "lmstudio": (
        FamilyRow(
            r".*",
            Rules(
                title="LM Studio",
                instructions="system",
                renames=TO_LIMIT,
                tool_choices=NO_NAMED,
                response_formats=frozenset({"text", "json_schema"}),
                images=ImageForm.DATA,
            ),
        ),
    ),
    "ollama": (
        FamilyRow(
            r".*",
            Rules(
                title="Ollama",
                instructions="system",
                renames=TO_LIMIT,
                known=frozenset(
                    {"model", "messages", "stream", "stream_options", "max_tokens", "seed", "stop"}
                    | {"temperature", "top_p", "presence_penalty", "frequency_penalty", "response_format"}
                    | {"tools", "reasoning_effort", "reasoning", "logprobs", "top_logprobs"}
                ),
                efforts=("none", "low", "medium", "high", "max"),
                tool_choices=frozenset(),
                dropped_tool_fields=frozenset({"strict"}),
                images=ImageForm.DATA,
            ),
        ),
    ),
}
"""Servers that people run themselves, by the setting `maker` or the `owned_by` of their lists of models."""

CHAT_TO_RUNTIME: Final = Rules(
    title="the runtime",
    efforts=("none", "low", "medium", "high", "max"),
    dropped=OPENAI_FIELDS | {"logit_bias", "parallel_tool_calls", "user", "chat_template_kwargs"},
)
"""The fields of a chat request that the native protocol of runtimes has no counterpart for."""
