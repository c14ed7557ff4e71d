"""Embedders over HTTP: OpenAI-compatible endpoints and the Ollama API."""

import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.ingest.fair_gate import FairGate
from gatewayd.ingest.records import EmbeddingPrefixes, EmbeddingPurpose, EmbeddingSpace
from gatewayd.ingest.size_classes import OTHER_WORK, QueueKey
from gatewayd.metering.service_calls import NOBODY, MeteredService, ServiceCalls, paid_by
from gatewayd.text import encodable
from gatewayd.upstream.http.client import UpstreamClient
from gatewayd.upstream.services.client import (
    ServiceOptions,
    make_service_client,
    service_maker,
    translate_refusals,
)
from gatewayd.upstream.sources.openai import order_vectors

SAMPLE: Final = "a sample"
PROVIDER: Final = "embedding"
"""Name of the service in usage and prices."""


@dataclass(frozen=True, slots=True)
class EmbedderOptions:
    """The embedding model and its requests.

    `batch_size` is the maximum number of texts in one request, `requests` the maximum number of simultaneous
    requests for chunks.
    """

    service: ServiceOptions
    model: str
    batch_size: int = 32
    requests: int = 2
    query_prefix: str = ""
    content_prefix: str = ""


class _HttpEmbedder(ABC):
    """An `ingest.interfaces.Embedder`; each subclass has one protocol."""

    kind: str
    path: str

    def __init__(
        self, options: EmbedderOptions, calls: ServiceCalls, client: UpstreamClient | None = None
    ) -> None:
        name = f"embedding model {options.model}"
        self._options = options
        self._calls = calls
        self._service = MeteredService(
            PROVIDER, options.model, "embeddings", service_maker(options.service, self.kind)
        )
        self._exchange = make_service_client(name, options.service, client)
        self._prefixes = EmbeddingPrefixes(options.query_prefix, options.content_prefix)
        self._passages = FairGate(options.requests)
        self._dimension = 0

    async def space(self) -> EmbeddingSpace:
        """Return the embedding space; requests a vector if the dimension is not known yet.

        Raises GatewayError: upstream_unreachable, upstream_failed, rate_limited, timeout.
        """
        if not self._dimension:
            with paid_by(NOBODY):
                await self.embed([SAMPLE], EmbeddingPurpose.QUERY)
        return EmbeddingSpace(f"{self.kind}:{self._options.model}{self._prefixes.mark()}", self._dimension)

    async def embed(
        self, texts: Sequence[str], purpose: EmbeddingPurpose, key: QueueKey = OTHER_WORK
    ) -> bytes:
        """Return a vector of length 1 for each text, in order, as little-endian float32.

        Queries do not wait for chunks, whose requests take turns by `key`. Raises the errors of `space`.
        """
        prefix = self._prefixes.before(purpose)
        clean = [encodable(prefix + text) for text in texts]
        size = self._options.batch_size
        batches = [clean[start : start + size] for start in range(0, len(clean), size)]
        if purpose is EmbeddingPurpose.QUERY:
            return b"".join([await self._ask(batch) for batch in batches])
        parts = []
        for batch in batches:
            async with self._passages.held(key):
                parts.append(await self._ask(batch))
        return b"".join(parts)

    async def close(self) -> None:
        """Close all connections."""
        await self._exchange.close()

    @abstractmethod
    def _body(self, texts: list[str]) -> Mapping[str, Any]:
        """Return the request for the vectors of some texts."""

    @abstractmethod
    def _vectors(self, answer: Mapping[str, Any]) -> list[object]:
        """Return the unchecked vectors of an answer, in the order of the texts."""

    async def _ask(self, texts: list[str]) -> bytes:
        body = self._body(texts)
        with translate_refusals():
            answer = await self._calls.run(self._service, body, lambda: self._post(body))
            vectors = self._vectors(answer)
            if len(vectors) != len(texts):
                sentence = f"it answered {len(texts)} texts with {len(vectors)} vectors"
                raise self._exchange.failures.broken(sentence)
            return b"".join(map(self._packed, vectors))

    async def _post(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return (await self._exchange.post(self.path, body))[1]

    def _packed(self, vector: object) -> bytes:
        """Return a vector scaled to length 1; the first vector determines the dimension."""
        failures = self._exchange.failures
        if not isinstance(vector, list) or not all(type(number) in (int, float) for number in vector):
            raise failures.broken("one of its vectors is not a list of numbers")
        length = math.hypot(*vector)
        if not math.isfinite(length) or not length:
            raise failures.broken("one of its vectors has no length")
        if len(vector) != (self._dimension or len(vector)):
            sentence = f"it sent a vector of {len(vector)} numbers after one of {self._dimension}"
            raise failures.broken(sentence)
        self._dimension = len(vector)
        return struct.pack(f"<{len(vector)}f", *(number / length for number in vector))


class OpenAiEmbedder(_HttpEmbedder):
    """Client of `POST {base_url}/embeddings`."""

    kind = "openai"
    path = "/embeddings"

    def _body(self, texts: list[str]) -> Mapping[str, Any]:
        return {"model": self._options.model, "input": texts}

    def _vectors(self, answer: Mapping[str, Any]) -> list[object]:
        return [item.get("embedding") for item in order_vectors(answer.get("data"), self._exchange.failures)]


class OllamaEmbedder(_HttpEmbedder):
    """Client of `POST {base_url}/api/embed`, which truncates texts that are too long for the model."""

    kind = "ollama"
    path = "/api/embed"

    def _body(self, texts: list[str]) -> Mapping[str, Any]:
        return {"model": self._options.model, "input": texts, "truncate": True}

    def _vectors(self, answer: Mapping[str, Any]) -> list[object]:
        vectors = answer.get("embeddings")
        if not isinstance(vectors, list):
            raise self._exchange.failures.broken("its answer has no list of 'embeddings'")
        return vectors
