"""Providers of models in the settings: the `[[providers]]` table and the address lists."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from gatewayd.settings.types import (
    ExpectedValue,
    HeaderTable,
    Line,
    OwnSeconds,
    ProviderKey,
    ProviderKeys,
    Texts,
    Url,
)
from gatewayd.text import find_header_problem

DEFAULT_BASE_URLS: Final = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "ollama": "http://127.0.0.1:11434",
    "gemini": "https://generativelanguage.googleapis.com",
    "bedrock": "https://bedrock-runtime.us-east-1.amazonaws.com",
}

ProviderKind = Annotated[
    Literal["openai", "anthropic", "ollama", "azure", "gemini", "bedrock"],
    ExpectedValue('"openai", "anthropic", "ollama", "azure", "gemini" or "bedrock"'),
]

UpstreamProtocol = Annotated[
    Literal["", "chat", "responses", "responses_with_tools"],
    ExpectedValue('"chat", "responses", "responses_with_tools" or ""'),
]

BatchUse = Annotated[Literal["own", "passed"], ExpectedValue('"own" or "passed"')]

ModelList = Annotated[Literal["filter", "add", "replace"], ExpectedValue('"filter", "add" or "replace"')]

Maker = Annotated[
    Literal[
        "",
        "anthropic",
        "azure",
        "bedrock",
        "cerebras",
        "cohere",
        "dashscope",
        "deepseek",
        "fireworks",
        "gemini",
        "groq",
        "kimi",
        "llamacpp",
        "lmstudio",
        "minimax",
        "mistral",
        "ollama",
        "openai",
        "openrouter",
        "perplexity",
        "sglang",
        "together",
        "tolerant",
        "vertex",
        "vllm",
        "xai",
        "zai",
    ],
    ExpectedValue('a maker of gatewayd-dialects(7), PROVIDER RULES, or ""'),
]


class Provider(BaseModel):
    """One `[[providers]]` table, or one element of the address lists.

    `key` is the key itself, read from `key`, `key_file` or `key_credential`; empty for none. A time of None
    means the general setting. Values of `headers` are secret, as keys are.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Line = Field(min_length=1, max_length=64, description="Name in messages and logs.")
    kind: ProviderKind = Field("openai", description="Protocol that the provider speaks.")
    base_url: Url = Field(
        description="Address of the provider; by default that of the protocol's vendor, for ollama this"
        " machine."
    )
    key: ProviderKey = Field(SecretStr(""), description="Key for the provider.")
    key_file: Annotated[Path | None, ExpectedValue("the path of a file")] = Field(
        None, description="File that holds the key, relative to the configuration file."
    )
    key_credential: Annotated[Line | None, ExpectedValue("the name of a credential")] = Field(
        None, description="Name of the file in the credentials directory that holds the key."
    )
    keys: ProviderKeys = Field(
        (), description="Further keys, used in turn with key; one that the provider refuses rests."
    )
    headers: HeaderTable = Field({}, description="Headers of every request to the provider; no log has them.")
    api_version: Line = Field(
        "",
        max_length=64,
        description="Version of the API of Azure, as a date: with it requests go to the paths of deployments,"
        " without it to /openai/v1.",
    )
    upstream: UpstreamProtocol = Field(
        "",
        description="Protocol in which models of kind openai and azure are reached; when empty, that of the"
        " family of each model.",
    )
    families: Annotated[dict[str, Line], ExpectedValue("a table of ids and canonical names of models")] = (
        Field(
            {},
            description="Canonical names of models by their ids at the provider, for deployments.",
        )
    )
    prefix: Line = Field("", description="Text put directly before the id of each model.")
    models: Texts = Field(
        (), description="Ids of the models to offer, as the provider names them; all when empty."
    )
    model_list: ModelList = Field(
        "filter",
        description="What models does to the list of the provider: filter leaves out all others, add offers"
        " them besides the list, replace offers them alone and does not ask for the list.",
    )
    maker: Maker = Field(
        "",
        description="Whose rules requests follow, see gatewayd-dialects(7); when empty, by the host name and"
        " the list of models.",
    )
    denied_betas: Texts = Field(
        (),
        description="Betas and headers anthropic-* of callers that a provider of the kind anthropic does not"
        " get, with the parts of requests that belong to them; * stands for any text.",
    )
    batches: BatchUse = Field(
        "own",
        description="Who runs batches of the models of a provider of kind openai or anthropic: own is the"
        " queue of the gateway, passed the provider, see gatewayd-dialects(7).",
    )
    connections: Annotated[int, ExpectedValue("a whole number")] = Field(
        10_000,
        ge=1,
        le=65_535,
        description="Maximum number of connections to the provider; further requests wait.",
    )
    connect_timeout: OwnSeconds = Field(None, gt=0, description="Replaces upstream_connect_timeout.")
    first_byte_timeout: OwnSeconds = Field(None, gt=0, description="Replaces upstream_first_byte_timeout.")
    stream_idle_timeout: OwnSeconds = Field(
        None, gt=0, description="Replaces aiohttp_client_stream_idle_timeout."
    )
    timeout: OwnSeconds = Field(None, gt=0, description="Replaces aiohttp_client_timeout.")

    @model_validator(mode="after")
    def _check_models(self) -> Self:
        if self.model_list == "replace" and not self.models:
            raise ValueError('model_list "replace" needs models')
        return self

    @model_validator(mode="before")
    @classmethod
    def _default_address(cls, values: Any) -> Any:
        if not isinstance(values, dict) or "base_url" in values:
            return values
        kind = values.get("kind", "openai")
        default = DEFAULT_BASE_URLS.get(str(kind), DEFAULT_BASE_URLS["openai"])
        return values if kind == "azure" else {**values, "base_url": default}

    @property
    def header_pairs(self) -> tuple[tuple[str, str], ...]:
        """The headers with their secret values."""
        return tuple((name, value.get_secret_value()) for name, value in self.headers.items())

    @property
    def all_keys(self) -> tuple[str, ...]:
        """All keys, the first of which is `key` if it is set."""
        return tuple(key.get_secret_value() for key in (self.key, *self.keys) if key.get_secret_value())

    def find_problem(self) -> str | None:
        """Return what is wrong with the table as a whole, None if nothing is."""
        if self.kind == "azure" and not self.models:
            return "cannot use kind azure without models: name the deployments, which Azure does not list"
        if self.kind == "bedrock" and self.keys:
            return "cannot use keys with kind bedrock, which takes one key"
        problem = find_header_problem(self.header_pairs, has_key=bool(self.all_keys))
        return None if problem is None else f"cannot use headers of provider {self.name!r}: {problem}"


def from_openai_lists(urls: Sequence[str], keys: Sequence[SecretStr]) -> Iterator[Provider]:
    """Match addresses and keys by position; an empty or missing address is that of OpenAI."""
    for place, (url, key) in enumerate(zip_longest(urls, keys), start=1):
        yield Provider(
            name="openai" if place == 1 else f"openai-{place}",
            kind="openai",
            base_url=url or DEFAULT_BASE_URLS["openai"],
            key=key or SecretStr(""),
        )


def from_ollama_list(urls: Sequence[str]) -> Iterator[Provider]:
    """Name each runtime by its position."""
    for place, url in enumerate(urls, start=1):
        yield Provider(name="ollama" if place == 1 else f"ollama-{place}", kind="ollama", base_url=url)
