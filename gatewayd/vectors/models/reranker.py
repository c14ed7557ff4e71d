"""Reranker with a cross-encoder on this machine, which runs in a child process."""

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.tasks import TaskRegistry
from gatewayd.text import encodable
from gatewayd.vectors.local import LocalKind, LocalOptions, describe_model, open_process


class LocalReranker:
    """A `knowledge.interfaces.Reranker`; its models are of the kinds fastembed and directory."""

    def __init__(self, options: LocalOptions, tasks: TaskRegistry) -> None:
        self._options = options
        self._process = open_process(options, self._opening, tasks)

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a score from 0 to 1 for each text, in order.

        Raises GatewayError: not_configured, unavailable, upstream_failed, and timeout if the process does not
        answer.
        """
        if not texts:
            return []
        request = {"query": encodable(query), "priority": "query"}
        return array("f", await self._process.rows(texts, request, self._options.seconds))

    async def close(self) -> None:
        """End the process."""
        await self._process.close()

    async def _opening(self) -> Mapping[str, Any]:
        if self._options.kind is LocalKind.BUILTIN:
            sentence = f"cannot use the reranking model {self._options.model!r}: none is built in"
            raise GatewayError(ErrorKind.NOT_CONFIGURED, sentence)
        return describe_model(self._options, "rerank")
