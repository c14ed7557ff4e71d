"""The fast path of embeddings: few texts for one source."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from gatewayd.accounts.records import Actor
from gatewayd.catalog.interfaces import CallContext, ImmediateEmbedder, implements
from gatewayd.catalog.records import Model
from gatewayd.completions.records import Body
from gatewayd.errors import GatewayError
from gatewayd.metering.answers import finish_whole
from gatewayd.pipeline.embeddings import MAX_BATCH, check_answer, joined, split
from gatewayd.pipeline.endpoints import check_names, context_of, model_of
from gatewayd.pipeline.fast_path import BegunWhole, FastAnswer, FastCalls
from gatewayd.pipeline.records import Endpoint

Render = Callable[[Body], bytes]
"""Returns the reply to a request from its answer; raises upstream_failed."""


class FastEmbeddings(FastCalls):
    """Begins requests for embeddings that need no wait before they are sent."""

    def begin(
        self, body: Body, actor: Actor, request_id: str, render: Render, arrived: Callable[[], None]
    ) -> "BegunEmbeddings | None":
        """Send a request and return at once; None, with nothing sent, if `EmbeddingService.run` must answer.

        `arrived` is called once, when the answer can be taken. Raises the refusals of `run`.
        """
        check_names(body)
        found = self._find(model_of(body), actor)
        if found is None or len(body["input"]) > MAX_BATCH:
            return None
        if not implements(type(found.source), ImmediateEmbedder):
            return None
        context = context_of(actor, request_id)
        call = self._prepare(found, actor, Endpoint.EMBEDDINGS, body, context)
        if call is None:
            return None
        source, (asked,) = cast(ImmediateEmbedder, found.source), split(body, found.model, MAX_BATCH)
        sent = source.embed_at_once(asked, found.model, context, arrived)
        if sent is None:
            return None
        begun = BegunEmbeddings(sent, call, self._catalog.meter, body, found.model, context, render)
        self._start(found, call, begun)
        return begun


@dataclass(slots=True, eq=False, repr=False)
class BegunEmbeddings(BegunWhole[Body]):
    """A request for embeddings that was sent."""

    _body: Body
    _model: Model
    _context: CallContext
    _render: Render

    def take(self) -> FastAnswer | None:
        """Return the answer once it has arrived; None for one that the service has to read."""
        try:
            answer = self._begun.take()
            if answer is None:
                return None
            check_answer(answer, len(self._body["input"]), self._model)
            whole = joined([answer], self._body, self._model)
            content = self._render(whole)
        except GatewayError:
            return None
        self._begun.response.close()
        finish_whole(self._meter, self._call, whole)
        return content, (), self._context.reply_headers
