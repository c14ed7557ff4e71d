"""Routes of `/v1/collections/{ref}/query` and `check`: search, and the check of the indexes."""

from collections.abc import Sequence
from dataclasses import replace

from aiohttp import web

from gatewayctl.wire import collections as wire
from gatewayctl.wire import routes
from gatewayd.errors import invalid
from gatewayd.http.body import read_model
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.peer import PEER
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import control_reply
from gatewayd.http.routes import Route
from gatewayd.ingest.records import ScopeKind, SearchScope
from gatewayd.knowledge.checks import IndexChecks
from gatewayd.knowledge.collections import CollectionService
from gatewayd.knowledge.records import Passage
from gatewayd.knowledge.retrieval import MAX_K, RetrievalService, SearchOptions


class CollectionSearchRoutes:
    """Routes of search and index checks; `options` are the defaults of a query."""

    def __init__(
        self,
        collections: CollectionService,
        retrieval: RetrievalService,
        options: SearchOptions,
        checks: IndexChecks,
        viewers: ControlActors,
    ) -> None:
        self._collections = collections
        self._retrieval = retrieval
        self._options = options
        self._checks = checks
        self._viewers = viewers

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.QUERY_COLLECTION, self.query, interruptible=True),
            serve(routes.CHECK_COLLECTION, self.check),
        ]

    async def query(self, request: web.Request) -> web.StreamResponse:
        """Take `Query`, answer `SearchAnswer`."""
        wanted = await read_model(request, wire.Query)
        options = _options(wanted, self._options)
        actor = self._viewers.operator(request[PEER])
        collection = await self._collections.resolve(actor, request.match_info["ref"])
        scope = SearchScope(ScopeKind.COLLECTION, collection.id)
        found = await self._retrieval.search([scope], wanted.query, options)
        passages = [_passage(each) for each in found.passages]
        return control_reply(wire.SearchAnswer(passages=passages, warnings=list(found.warnings)))

    async def check(self, request: web.Request) -> web.StreamResponse:
        """Answer `CheckReport`, after the repair of what the database can restore."""
        actor = self._viewers.operator(request[PEER])
        report = await self._checks.check(actor, request.match_info["ref"])
        return control_reply(
            wire.CheckReport(
                id=report.collection.id,
                name=report.collection.name,
                files=report.files,
                passages=report.passages,
                vectors=report.vectors,
                problems=list(report.problems),
            )
        )


def _options(wanted: wire.Query, usual: SearchOptions) -> SearchOptions:
    if wanted.k is not None and not 1 <= wanted.k <= MAX_K:
        raise invalid(f"cannot accept k: expected 1 to {MAX_K}", param="k")
    if wanted.threshold is not None and not 0 <= wanted.threshold <= 1:
        raise invalid("cannot accept threshold: expected a number from 0 to 1", param="threshold")
    return replace(usual, **wanted.model_dump(exclude={"query"}, exclude_none=True))


def _passage(passage: Passage) -> wire.Passage:
    stored = passage.stored
    return wire.Passage(
        text=stored.text,
        score=passage.score,
        similarity=passage.similarity,
        file_id=stored.file_id,
        file=passage.file_name,
        page=stored.page,
        heading=stored.heading,
        start=stored.start,
        dense=passage.dense,
        dense_rank=passage.dense_rank,
        lexical=passage.lexical,
        lexical_rank=passage.lexical_rank,
    )
