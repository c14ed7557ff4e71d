"""What a provider says of a model, in the words of the model list of OpenRouter; pure.

Providers name the same facts differently. Clients such as opencode, aider and LibreChat read
`context_length`, `architecture`, `supported_parameters` and `pricing` of a model list.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from gatewayd.completions.json_access import as_mapping, as_sequence

CONTEXT_FIELDS: Final = (
    "context_length",
    "context_window",
    "max_model_len",
    "loaded_context_length",
    "max_context_length",
    "max_input_tokens",
    "inputTokenLimit",
)
"""Names of the number of tokens that a model reads, the most exact first."""

ANSWER_FIELDS: Final = ("max_completion_tokens", "max_output_tokens", "outputTokenLimit", "max_tokens")
"""Names of the maximum number of tokens of an answer."""

MAX_TOKENS: Final = 2**40
"""Maximum of a number of tokens; larger ones are not believed."""

MAX_WORDS: Final = 100
"""Maximum number of modalities or parameters of a model."""

MAX_WORD_CHARACTERS: Final = 64
"""Maximum length of a modality, of a parameter, and of a price."""

CAPABILITY_MODALITIES: Final = {"image_input": "image", "pdf_input": "file"}
"""Capabilities in a list of Anthropic, and the modality that each stands for."""


def facts_of(detail: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts in the details of a model: sizes in tokens, modalities, parameters, prices.

    Members are `context_length`, `max_completion_tokens`, `architecture` with `input_modalities` and
    `output_modalities`, `supported_parameters` and `pricing`, each present only if the provider says it.
    """
    listed = as_mapping(detail.get("openai"))
    if not listed:
        return {}
    facts: dict[str, Any] = {
        "context_length": _first_number(listed, CONTEXT_FIELDS) or _trained_length(listed),
        "max_completion_tokens": _first_number(listed, ANSWER_FIELDS)
        or _first_number(as_mapping(listed.get("top_provider")), ANSWER_FIELDS),
        "architecture": _modalities(listed),
        "supported_parameters": _words(listed.get("supported_parameters")),
        "pricing": _prices(listed.get("pricing")),
    }
    return {name: value for name, value in facts.items() if value}


def _first_number(listed: Mapping[str, Any], names: Iterable[str]) -> int | None:
    for name in names:
        value = listed.get(name)
        if isinstance(value, int) and 0 < value <= MAX_TOKENS and not isinstance(value, bool):
            return value
    return None


def _trained_length(listed: Mapping[str, Any]) -> int | None:
    """Return the length that llama.cpp gives in `meta`."""
    return _first_number(as_mapping(listed.get("meta")), ("n_ctx", "n_ctx_train"))


def _modalities(listed: Mapping[str, Any]) -> dict[str, list[str]]:
    architecture = as_mapping(listed.get("architecture"))
    named = {name: _words(architecture.get(name)) for name in ("input_modalities", "output_modalities")}
    if any(named.values()):
        return {name: words for name, words in named.items() if words}
    capabilities = as_mapping(listed.get("capabilities"))
    taken = [
        modality
        for name, modality in CAPABILITY_MODALITIES.items()
        if as_mapping(capabilities.get(name)).get("supported") is True
    ]
    if not taken:
        return {}
    return {"input_modalities": ["text", *taken], "output_modalities": ["text"]}


def _words(value: object) -> list[str]:
    found = as_sequence(value)[:MAX_WORDS]
    return [word for word in found if isinstance(word, str) and 0 < len(word) <= MAX_WORD_CHARACTERS]


def _prices(value: object) -> dict[str, str]:
    """Return prices for each token, request or picture as texts, as they are written in JSON numbers."""
    found = list(as_mapping(value).items())[:MAX_WORDS]
    prices = {
        name: str(price)
        for name, price in found
        if isinstance(name, str) and isinstance(price, str | int | float) and not isinstance(price, bool)
    }
    return {
        name: price
        for name, price in prices.items()
        if len(name) <= MAX_WORD_CHARACTERS and len(price) <= MAX_WORD_CHARACTERS
    }
