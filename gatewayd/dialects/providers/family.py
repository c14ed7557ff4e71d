"""Tells the maker that serves a model, and the canonical name of the model behind aliases; pure."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

MAX_NAME_CHARACTERS: Final = 256
"""Maximum number of characters of an id that is examined; longer ids have no family."""

HOSTS: Final[tuple[tuple[str, str], ...]] = (
    ("api.openai.com", "openai"),
    (".api.openai.com", "openai"),
    (".openai.azure.com", "azure"),
    (".services.ai.azure.com", "azure"),
    (".cognitiveservices.azure.com", "azure"),
    (".models.ai.azure.com", "azure"),
    ("api.anthropic.com", "anthropic"),
    ("api.deepseek.com", "deepseek"),
    ("api.moonshot.ai", "kimi"),
    ("api.moonshot.cn", "kimi"),
    ("dashscope.aliyuncs.com", "dashscope"),
    ("dashscope-intl.aliyuncs.com", "dashscope"),
    ("dashscope-us.aliyuncs.com", "dashscope"),
    ("api.z.ai", "zai"),
    ("open.bigmodel.cn", "zai"),
    ("api.minimax.io", "minimax"),
    ("api.minimaxi.com", "minimax"),
    ("api.mistral.ai", "mistral"),
    ("codestral.mistral.ai", "mistral"),
    ("api.groq.com", "groq"),
    ("api.cerebras.ai", "cerebras"),
    ("api.x.ai", "xai"),
    ("generativelanguage.googleapis.com", "gemini"),
    ("aiplatform.googleapis.com", "vertex"),
    ("-aiplatform.googleapis.com", "vertex"),
    ("openrouter.ai", "openrouter"),
    ("api.perplexity.ai", "perplexity"),
    ("api.together.xyz", "together"),
    ("api.together.ai", "together"),
    ("api.fireworks.ai", "fireworks"),
    ("api.cohere.ai", "cohere"),
    ("api.cohere.com", "cohere"),
    (".amazonaws.com", "bedrock"),
)
"""Makers by host name; an entry that begins with a dot or a hyphen is the end of a host name."""

ENGINES: Final = {
    "vllm": "vllm",
    "llamacpp": "llamacpp",
    "library": "ollama",
    "organization_owner": "lmstudio",
}
"""Engines by the `owned_by` of the models that they list."""

MAKERS: Final = frozenset({maker for _, maker in HOSTS} | set(ENGINES.values()) | {"sglang", "tolerant"})
"""The words that the setting `maker` of a provider takes; `tolerant` has no rule at all."""

TEXT_EMBEDDERS: Final = frozenset(
    {"bedrock", "cerebras", "cohere", "dashscope", "gemini", "lmstudio", "minimax", "mistral", "ollama"}
    | {"perplexity", "together", "vertex", "zai"}
)
"""Makers whose embeddings take texts only, while others take lists of token numbers too."""

CACHE_PROXIES: Final = frozenset({"", "openrouter"})
"""Makers that serve Claude in chat completions and take `cache_control`; "" is a proxy of unknown make."""

ORIGINS: Final[tuple[tuple[str, str], ...]] = (
    (r"gpt-oss", "gpt-oss"),
    (r"(gpt-|chatgpt-|o[134](-|$)|codex-|computer-use-preview)", "openai"),
    (r"claude-", "anthropic"),
    (r"deepseek", "deepseek"),
    (r"(kimi|moonshot)", "kimi"),
    (r"(qwen|qwq|qvq)", "dashscope"),
    (r"(glm-|chatglm)", "zai"),
    (r"minimax|abab", "minimax"),
    (r"(mistral|ministral|magistral|codestral|devstral|pixtral|voxtral|open-mi[sx]tral|mixtral)", "mistral"),
    (r"grok-", "xai"),
    (r"gemini-", "gemini"),
    (r"(sonar|r1-1776)", "perplexity"),
    (r"(command-|c4ai-)", "cohere"),
)
"""Makers of models by the beginnings of their canonical names."""

_HOSTED: Final = frozenset(maker for _, maker in HOSTS)
_ORIGINS: Final = tuple((re.compile(pattern), maker) for pattern, maker in ORIGINS)
_BEDROCK: Final = re.compile(
    r"^(?:(?:us|eu|apac|jp|au|ca|us-gov|global)\.)?"
    r"(?:anthropic|openai|meta|mistral|deepseek|qwen|moonshot|moonshotai|minimax|zai|cohere|amazon|ai21|google)\."
)
_BEDROCK_VERSION: Final = re.compile(r"-v\d+(?::\d+)?(?::\d+k)?$")
_DATE: Final = re.compile(r"[-@](?:20\d{2}-?[01]\d-?[0-3]\d|20\d{6})(?=$|-)")
_DOTTED_CLAUDE: Final = re.compile(r"(?<=\d)\.(?=\d)")


@dataclass(frozen=True, slots=True)
class Family:
    """Who checks a request for a model, and which model it is.

    `maker` serves the model, "" if unknown. `name` is the canonical id of the model in lower case. `origin`
    is the maker of the model itself, "" if its name tells none.
    """

    maker: str = ""
    name: str = ""
    origin: str = ""


@lru_cache(maxsize=4096)
def family_of(kind: str, host: str, model_id: str, record_family: str = "", maker: str = "") -> Family:
    """Return the family of a model; the first of these that tells the maker wins.

    `maker` is that of the settings, `host` the host name of the provider, `kind` its protocol.
    `record_family` is the canonical id in the record of the model, which goes before the id of the provider.
    """
    name = canonical_name(record_family or model_id)
    serving = maker or maker_of_host(host)
    if not serving and kind in {"anthropic", "azure"}:
        serving = kind
    return Family(serving, name, origin_of(name))


def maker_of_host(host: str) -> str:
    """Return the maker that a host name belongs to, or ""."""
    host = host.lower().rstrip(".")
    for known, maker in HOSTS:
        if host == known or (known[0] in ".-" and host.endswith(known)):
            return maker
    return ""


def takes_cache(family: Family) -> bool:
    """Return True for a model of Anthropic behind a proxy that hands its `cache_control` on."""
    return family.origin == "anthropic" and family.maker in CACHE_PROXIES


def is_hosted(maker: str) -> bool:
    """Return True for a maker with a service of its own, False for engines that people run themselves."""
    return maker in _HOSTED


@lru_cache(maxsize=4096)
def origin_of(name: str) -> str:
    """Return the maker of the model with a canonical name, or ""."""
    return next((maker for pattern, maker in _ORIGINS if pattern.match(name)), "")


@lru_cache(maxsize=4096)
def canonical_name(model_id: str) -> str:
    """Return the name of a model without path, region, variant, fine-tuning, version and date.

    `openai/gpt-4o-2024-08-06:free`, `us.anthropic.claude-opus-4-6-v1:0` and `ft:gpt-4o:acme::1` become
    `gpt-4o`, `claude-opus-4-6` and `gpt-4o`.
    """
    if len(model_id) > MAX_NAME_CHARACTERS:
        return ""
    name = model_id.strip().lower()
    if name.startswith("ft:"):
        name = name[3:].partition(":")[0]
    name = name.rpartition("/")[2]
    if _BEDROCK.match(name):
        name = _BEDROCK_VERSION.sub("", _BEDROCK.sub("", name))
    name = _DATE.sub("", name.partition(":")[0])
    name = name.removesuffix("-latest").removesuffix("@latest").removesuffix("@default")
    if name.startswith("claude-"):
        name = _DOTTED_CLAUDE.sub("-", name)
    return name


def known_family(model_id: str) -> str:
    """Return the canonical name of a model whose maker the name tells, else ""."""
    name = canonical_name(model_id)
    return name if origin_of(name) else ""
