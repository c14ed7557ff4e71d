"""Configuration of a provider: plain values from the settings, validated once.

The id that callers send is `prefix` directly followed by the id of the provider: for `acme.gpt-x` the prefix
is `acme.`.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Self

from yarl import URL

from gatewayd.errors import invalid
from gatewayd.text import find_header_problem, is_token
from gatewayd.upstream.tools.identity import IdentityHeaders
from gatewayd.urls import split_url


class SourceKind(StrEnum):
    """Protocol of a provider."""

    # `{base_url}/models`, `{base_url}/chat/completions`.
    OPENAI = "openai"
    # `{base_url}/v1/models`, `{base_url}/v1/messages`.
    ANTHROPIC = "anthropic"
    # `{base_url}/api/tags`, `{base_url}/api/chat`.
    OLLAMA = "ollama"
    # `{base_url}/openai/v1`, or `{base_url}/openai/deployments/NAME` with an API version.
    AZURE = "azure"
    # `{base_url}/v1beta/models`, `{base_url}/v1beta/models/ID:generateContent`.
    GEMINI = "gemini"
    # The operations Converse and ConverseStream at `{base_url}`.
    BEDROCK = "bedrock"


class ModelListUse(StrEnum):
    """What the `models` of a provider mean for its own list."""

    # Models of the list that are not in `models` are left out; without `models` there are all.
    FILTER = "filter"
    # The models of `models` are offered besides those of the list.
    ADD = "add"
    # The models of `models` are offered; the provider is not asked for its list.
    REPLACE = "replace"


KEY_HEADER_NAMES: Final = {
    SourceKind.ANTHROPIC: "x-api-key",
    SourceKind.AZURE: "api-key",
    SourceKind.GEMINI: "x-goog-api-key",
}
"""Headers with the key by protocol; all others have it in Authorization."""


BATCH_KINDS: Final = frozenset({SourceKind.OPENAI, SourceKind.ANTHROPIC})
"""Protocols with batches that the gateway passes on."""


@dataclass(frozen=True, slots=True)
class UpstreamTimeouts:
    """Time limits for a provider, in seconds.

    `connect` covers the name look-up, the wait for a slot of the pool, and the handshakes. `first_byte` is
    the wait for the status line, and again for the first byte of the body, because some servers answer 200
    before they compute. `idle` is the wait between two reads, `total` the limit for the whole answer.
    """

    connect: float = 5.0
    first_byte: float = 300.0
    idle: float = 120.0
    total: float | None = None


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """One provider or runtime.

    `models` has ids of the provider, `model_list` what they mean for its list. `index` is the position of
    the provider in the settings, counted separately for runtimes, and appears as `urlIdx` and in `urls`.
    `owned_by` and `connection_type` replace the values of the kind in listings.
    With `socket_path` connections go to that unix socket; `base_url` gives only the path and the Host.
    With `identity` requests name the user. `maker` is one of the makers of `dialects.providers.family`, "" to
    tell it by the host. `rules` are patterns of families or ids, each with changes of their rules as JSON.
    `denied_betas` are betas and headers of callers that a provider of kind anthropic does not get; `*` stands
    for any text. `upstream` is the protocol of all its models (`chat`, `responses` or
    `responses_with_tools`), "" for what the rules of each say. `keys` are further keys, used in turn with
    `key`. `headers` go with every request. `api_version` is that of Azure. `families` has canonical names of
    models by the provider's own ids. With `passes_batches` the provider runs batches of its models itself.
    """

    name: str
    kind: SourceKind
    base_url: str
    key: str | None = field(default=None, repr=False)
    prefix: str = ""
    models: tuple[str, ...] = ()
    model_list: ModelListUse = ModelListUse.FILTER
    index: int = 0
    owned_by: str | None = None
    connection_type: str | None = None
    socket_path: str | None = None
    timeouts: UpstreamTimeouts = field(default_factory=UpstreamTimeouts)
    connections: int = 1000
    identity: IdentityHeaders | None = None
    maker: str = ""
    rules: tuple[tuple[str, str], ...] = ()
    denied_betas: tuple[str, ...] = ()
    upstream: str = ""
    keys: tuple[str, ...] = field(default=(), repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    api_version: str = ""
    families: tuple[tuple[str, str], ...] = ()
    passes_batches: bool = False

    def __post_init__(self) -> None:
        """Refuse values that would only fail later, within a request."""
        if not self.name or not self.name.isprintable():
            raise invalid("cannot use a provider without a printable name", param="name")
        _check_url(self.name, self.base_url)
        for param, key in (("key", self.key), *(("keys", each) for each in self.keys)):
            if key is not None and not is_token(key):
                raise invalid(
                    f"cannot use the {param} of provider {self.name!r}: expected visible ASCII characters",
                    param=param,
                )
        problem = find_header_problem(self.headers, has_key=bool(self.all_keys))
        if problem is not None:
            raise invalid(f"cannot use headers of provider {self.name!r}: {problem}", param="headers")
        if self.kind is SourceKind.AZURE and not self.models:
            refusal = f"cannot use provider {self.name!r} without models: name its deployments"
            raise invalid(refusal, param="models")
        if self.kind is SourceKind.BEDROCK and self.keys:
            raise invalid(f"cannot use keys of provider {self.name!r}: bedrock takes one key", param="keys")
        if self.passes_batches and self.kind not in BATCH_KINDS:
            refusal = f"cannot pass batches to provider {self.name!r}: kind {self.kind.value} has none"
            raise invalid(refusal, param="batches")
        if self.passes_batches and len(self.all_keys) > 1:
            refusal = f"cannot pass batches to provider {self.name!r}: several keys may not see the same ones"
            raise invalid(refusal, param="batches")
        if self.connections < 1:
            refusal = f"cannot use connections of provider {self.name!r}: it must be at least 1"
            raise invalid(refusal, param="connections")

    @property
    def all_keys(self) -> tuple[str, ...]:
        """All keys, each once, the first of which is `key`."""
        return tuple(dict.fromkeys([*([] if self.key is None else [self.key]), *self.keys]))

    def key_headers(self, key: str) -> dict[str, str]:
        """Return the header that carries a key in this protocol."""
        name = KEY_HEADER_NAMES.get(self.kind)
        return {"Authorization": f"Bearer {key}"} if name is None else {name: key}

    def without_suffix(self, suffix: str) -> Self:
        """Return the configuration with a base URL that does not end in `suffix`, which the source adds."""
        return replace(self, base_url=self.base_url.rstrip("/").removesuffix(suffix))


def _check_url(name: str, base_url: str) -> None:
    refusal = f"cannot use base_url of provider {name!r}: "
    try:
        # URL() encodes the host in time quadratic in its length.
        split_url(base_url)
        url = URL(base_url)
        host = url.host
    except ValueError as error:
        raise invalid(refusal + "it is not a URL", param="base_url") from error
    if url.scheme not in {"http", "https"} or not host:
        raise invalid(refusal + "it must start with http:// or https:// and name a host", param="base_url")
    if url.user is not None or url.password is not None:
        raise invalid(refusal + "credentials belong into the key", param="base_url")
    if url.query_string or url.fragment:
        raise invalid(refusal + "it must not have a query or fragment", param="base_url")
