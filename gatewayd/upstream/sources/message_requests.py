"""Requests of the messages protocol to one provider: path, headers and body for its host."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from yarl import URL

from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Model
from gatewayd.completions.json_access import as_mapping
from gatewayd.completions.records import Body
from gatewayd.dialects.anthropic.betas import (
    BETA_HEADER,
    denied_parts,
    family_of_beta,
    is_denied,
    parse_betas,
    parts_of,
    without_parts,
)
from gatewayd.dialects.anthropic.hosts import HOST_RULES, HostRules, MessageHost, host_of, path_of, placed
from gatewayd.dialects.providers.message_request import with_demanded_thinking
from gatewayd.upstream.sources.config import ProviderConfig
from gatewayd.upstream.sources.model_rules import ModelRules
from gatewayd.upstream.streams.aws_events import AwsEventFramer
from gatewayd.upstream.streams.decoder import StreamFramer
from gatewayd.upstream.streams.sse import DataFramer

VERSION: Final = "2023-06-01"
"""The protocol version in requests of callers that send none."""

VERSION_HEADER: Final = "anthropic-version"

FORMAT_BETA: Final = "structured-outputs"
"""The beta of the former field `output_format`, which `output_config.format` replaces."""

_BETA: Final = re.compile(r"[A-Za-z0-9._-]{1,200}")
_BODY_BETAS: Final = ("betas", "anthropic_beta")
_HOST_FIELDS: Final = frozenset({*_BODY_BETAS, "anthropic_version"})
"""Fields that other hosts have in place of headers."""


class MessageRequest(NamedTuple):
    """One request: its path below the base address, its own headers and its body."""

    path: str
    body: Body
    headers: Mapping[str, str]


class MessageRequests:
    """Makes the requests to one provider."""

    def __init__(self, config: ProviderConfig, models: ModelRules) -> None:
        self._name = config.name
        self._models = models
        self._denied = config.denied_betas
        self._denied_parts = denied_parts(config.denied_betas)
        self.host = host_of(URL(config.base_url).host or "", config.maker)
        self.rules: HostRules = HOST_RULES[self.host]

    def native(self, body: Body, model: Model, context: CallContext, *, stream: bool) -> MessageRequest:
        """Return a request of a caller of this protocol, unchanged but for what is denied or unknown here."""
        headers = dict(context.client_headers)
        betas = parse_betas([headers.pop(BETA_HEADER, ""), *_betas_in(body)])
        if not _HOST_FIELDS.isdisjoint(body):
            body = {name: value for name, value in body.items() if name not in _HOST_FIELDS}
        body, kept = self._permitted(body, betas, model, context)
        if self._models.of(model).messages.demands_reasoning:
            body = with_demanded_thinking(body)
        if "output_format" in body and not any(family_of_beta(beta) == FORMAT_BETA for beta in kept):
            body = _with_format(body)
        return self._placed(body, {**headers, **_header_of(kept)}, stream=stream)

    def converted(self, body: Body, model: Model, context: CallContext, *, stream: bool) -> MessageRequest:
        """Return a converted request, with those betas of its caller whose parts it still has."""
        headers = dict(context.client_headers)
        betas = parse_betas([headers.pop(BETA_HEADER, "")])
        present = [beta for beta in betas if not (parts := parts_of([beta])) or without_parts(body, parts)[1]]
        body, kept = self._permitted(body, present, model, context)
        return self._placed(body, {**headers, **_header_of(kept)}, stream=stream)

    def framer(self) -> StreamFramer:
        """Return the framer of a stream of the host."""
        return AwsEventFramer() if self.host is MessageHost.BEDROCK_INVOKE else DataFramer()

    def _permitted(
        self, body: Body, betas: Sequence[str], model: Model, context: CallContext
    ) -> tuple[Body, Sequence[str]]:
        """Return the request and the betas that the provider gets, without the parts of all others."""
        dropped = [beta for beta in betas if is_denied(beta, self._denied) or not self.rules.takes(beta)]
        if not dropped and not self._denied:
            return body, [self.rules.renames(beta) for beta in betas] if self.rules.renamed else betas
        kept = [beta for beta in betas if beta not in dropped]
        parts = (parts_of(dropped) | self._denied_parts) - parts_of(kept)
        body, names = without_parts(body, parts)
        if dropped or names:
            left_out = ", ".join([*(f"the beta {beta:.80}" for beta in dropped), *names])
            sentence = f"cannot send {left_out}: provider {self._name!r} does not take it"
            self._models.warn(sentence, model, context)
        return body, list(dict.fromkeys(map(self.rules.renames, kept)))

    def _placed(self, body: Body, headers: Mapping[str, str], *, stream: bool) -> MessageRequest:
        path = path_of(self.host, body.get("model"), stream=stream)
        named = {VERSION_HEADER: VERSION} | {
            name: value
            for name, value in headers.items()
            if name not in self._denied_parts.headers and not is_denied(name, self._denied)
        }
        body, own = placed(self.host, {**body, "stream": stream}, named)
        return MessageRequest(path, body, own)


def _header_of(betas: Sequence[str]) -> dict[str, str]:
    return {BETA_HEADER: ",".join(betas)} if betas else {}


def _betas_in(body: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for name in _BODY_BETAS:
        given = body.get(name)
        if isinstance(given, list):
            found += [beta for beta in given if isinstance(beta, str) and _BETA.fullmatch(beta)]
    return found


def _with_format(body: Body) -> Body:
    """Return a request with the former field for a JSON schema as it is called now."""
    rest = {name: value for name, value in body.items() if name != "output_format"}
    config = as_mapping(body.get("output_config"))
    if body["output_format"] is not None and config.get("format") is None:
        rest["output_config"] = {**config, "format": body["output_format"]}
    return rest
