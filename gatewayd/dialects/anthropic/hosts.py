"""The hosts of the messages protocol: which betas they have, and where a request has them; pure.

Anthropic's own API gets a request as it came. Bedrock, Vertex and Azure lack betas, and the first two have
the model in the path.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import quote

from gatewayd.completions.records import Body
from gatewayd.dialects.anthropic.betas import BETA_HEADER, family_of_beta


class MessageHost(StrEnum):
    """A host that speaks the messages protocol."""

    # Anthropic, and every server that this table does not know.
    NATIVE = "native"
    # The newer path of Bedrock, with the paths of Anthropic.
    BEDROCK_MANTLE = "bedrock_mantle"
    # The older path of Bedrock, with the model in the path.
    BEDROCK_INVOKE = "bedrock_invoke"
    # Vertex, with the model in the path.
    VERTEX = "vertex"
    # Azure.
    AZURE = "azure"


@dataclass(frozen=True, slots=True)
class HostRules:
    """What a host takes.

    `betas` are the names without dates of the betas that it has, None for all but those in `lacking`;
    `renamed` maps names with dates. `version` goes into the body as `anthropic_version`, and with it
    `has_model_in_path`. With `has_betas_in_body` the betas are the field `anthropic_beta`.
    """

    betas: frozenset[str] | None = None
    lacking: frozenset[str] = frozenset()
    renamed: Mapping[str, str] | None = None
    version: str = ""
    has_model_in_path: bool = False
    has_betas_in_body: bool = False
    is_bearer: bool = False

    def takes(self, beta: str) -> bool:
        """Return whether the host has a beta."""
        family = family_of_beta(beta)
        return family not in self.lacking if self.betas is None else family in self.betas

    def renames(self, beta: str) -> str:
        """Return the host's own name of a beta."""
        return (self.renamed or {}).get(family_of_beta(beta), beta)


_INVOKE: Final = frozenset(
    {
        *("advanced-tool-use", "compact", "computer-use", "context-1m", "context-management", "effort"),
        *("fine-grained-tool-streaming", "mid-conversation-system", "mid-conversation-tool-changes"),
        "tool-search-tool",
    }
)
_VERTEX: Final = frozenset(
    {
        *("advanced-tool-use", "compact", "context-1m", "context-management", "interleaved-thinking"),
        *("tool-search-tool", "web-search"),
    }
)
_TOOL_SEARCH: Final = {"advanced-tool-use": "tool-search-tool-2025-10-19"}

HOST_RULES: Final[Mapping[MessageHost, HostRules]] = {
    MessageHost.NATIVE: HostRules(),
    MessageHost.BEDROCK_MANTLE: HostRules(
        betas=_INVOKE | {"interleaved-thinking"}, renamed=_TOOL_SEARCH, is_bearer=True
    ),
    MessageHost.BEDROCK_INVOKE: HostRules(
        betas=_INVOKE,
        renamed=_TOOL_SEARCH,
        version="bedrock-2023-05-31",
        has_model_in_path=True,
        has_betas_in_body=True,
        is_bearer=True,
    ),
    MessageHost.VERTEX: HostRules(
        betas=_VERTEX,
        renamed=_TOOL_SEARCH,
        version="vertex-2023-10-16",
        has_model_in_path=True,
        is_bearer=True,
    ),
    MessageHost.AZURE: HostRules(
        lacking=frozenset(
            {"advisor-tool", "compact", "fast-mode", "fine-grained-tool-streaming", "output-128k"}
        )
    ),
}

_MANTLE_NAME: Final = re.compile(r"bedrock-mantle\.[a-z0-9-]+\.api\.aws")
_INVOKE_NAME: Final = re.compile(
    r"bedrock-runtime[a-z0-9-]*\.[a-z0-9.-]+\.(?:amazonaws\.com(?:\.cn)?|api\.aws)"
)
_VERTEX_NAME: Final = re.compile(r"(?:[a-z0-9-]+-)?aiplatform(?:\.[a-z0-9-]+\.rep)?\.googleapis\.com")
_AZURE_NAME: Final = re.compile(r"[a-z0-9.-]+\.(?:services\.ai|cognitiveservices|openai)\.azure\.com")
_HOST_NAMES: Final = (
    (_MANTLE_NAME, MessageHost.BEDROCK_MANTLE),
    (_INVOKE_NAME, MessageHost.BEDROCK_INVOKE),
    (_VERTEX_NAME, MessageHost.VERTEX),
    (_AZURE_NAME, MessageHost.AZURE),
)
_MAKERS: Final = {
    "azure": MessageHost.AZURE,
    "bedrock": MessageHost.BEDROCK_INVOKE,
    "vertex": MessageHost.VERTEX,
}


def host_of(name: str, maker: str = "") -> MessageHost:
    """Return the host with this name, for an unknown name that of `maker`, of the settings."""
    known = name.lower()
    found = next((host for pattern, host in _HOST_NAMES if pattern.fullmatch(known)), None)
    return found or _MAKERS.get(maker, MessageHost.NATIVE)


def path_of(host: MessageHost, model: object, *, stream: bool) -> str:
    """Return the path of a request below the base address."""
    if not HOST_RULES[host].has_model_in_path:
        return "/v1/messages"
    named = quote(str(model), safe="@.-_:")
    if host is MessageHost.VERTEX:
        return f"/models/{named}:{'streamRawPredict' if stream else 'rawPredict'}"
    return f"/model/{quote(str(model), safe='')}/invoke{'-with-response-stream' if stream else ''}"


def placed(host: MessageHost, body: Body, headers: Mapping[str, str]) -> tuple[Body, Mapping[str, str]]:
    """Return the body and the headers with the version, the model and the betas where the host has them."""
    rules = HOST_RULES[host]
    if not rules.has_model_in_path:
        return body, headers
    left_out = {"model", "stream"} if host is MessageHost.BEDROCK_INVOKE else {"model"}
    body = {"anthropic_version": rules.version} | {
        name: value for name, value in body.items() if name not in left_out
    }
    headers = {name: value for name, value in headers.items() if name != "anthropic-version"}
    if rules.has_betas_in_body and headers.get(BETA_HEADER):
        body["anthropic_beta"] = headers.pop(BETA_HEADER).split(",")
    return body, headers
