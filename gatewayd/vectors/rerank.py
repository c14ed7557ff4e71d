"""Orders passages with a cross-encoder on this machine, in a process of its own."""

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from gatewayd.errors import GatewayError, Kind
from gatewayd.tasks import Tasks
from gatewayd.vectors.local import OFFLINE, LocalKind, LocalOptions, describe
from gatewayd.vectors.process import ModelProcess


class LocalReranker:
    """A `knowledge.interfaces.Reranker`; its models are of the kinds fastembed and directory."""

    def __init__(self, options: LocalOptions, tasks: Tasks) -> None:
        self._options = options
        environment = options.environment if options.kind is LocalKind.FASTEMBED else OFFLINE
        self._process = ModelProcess(
            options.model, self._opening, environment, tasks, idle_seconds=options.idle_seconds
        )

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a score from 0 to 1 for each text, in order.

        Raises GatewayError: not_configured, unavailable, upstream_failed.
        """
        if not texts:
            return []
        clean = query.encode("utf-8", "replace").decode()
        return array("f", await self._process.rows(texts, {"query": clean, "priority": "query"}))

    async def close(self) -> None:
        """End the process."""
        await self._process.close()

    async def _opening(self) -> Mapping[str, Any]:
        if self._options.kind is LocalKind.BUILTIN:
            sentence = f"cannot use the reranking model {self._options.model!r}: none is built in"
            raise GatewayError(Kind.NOT_CONFIGURED, sentence)
        return describe(self._options, "rerank")
