"""Routes of `/api/v1/retrieval`: search in passages."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from aiohttp import web
from pydantic import Field

from gatewayd.accounts.records import Actor
from gatewayd.http.body import RequestBody, json_reply, read_model, warning_headers
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import actor
from gatewayd.http.public.files.on_demand import (
    DeleteBody,
    FileProcessing,
    Name,
    ProcessBatchBody,
    ProcessFileBody,
    ProcessTextBody,
)
from gatewayd.http.reply_schemas import documents
from gatewayd.http.routes import Route, RouteAccess, RouteGroup
from gatewayd.http.schemas import answers
from gatewayd.knowledge.retrieval import MAX_K, RetrievalResult, RetrievalService, SearchOptions
from gatewayd.knowledge.scopes import ScopeResolver
from gatewayd.knowledge.serializers import render_explanation, render_search_result
from gatewayd.metering.service_calls import paid_by

PREFIX: Final = "/api/v1/retrieval"
MAX_NAMES: Final = 1000
_row = RouteGroup(PREFIX, "retrieval").row

Count = Annotated[int, Field(ge=1, le=MAX_K)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class SearchBody(RequestBody):
    """Options of a search. Absent and null fields have the configured values."""

    query: Annotated[str, Field(max_length=100_000)]
    k: Count | None = None
    k_reranker: Count | None = None
    r: Share | None = None
    hybrid: bool | None = None
    hybrid_bm25_weight: Share | None = None

    def options(self, configured: SearchOptions) -> SearchOptions:
        """Return the configured options, replaced by those of the body."""
        asked = {
            "k": self.k,
            "k_reranker": self.k_reranker,
            "threshold": self.r,
            "hybrid": self.hybrid,
            "weight": self.hybrid_bm25_weight,
        }
        given: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
        return replace(configured, **given)


class QueryDocBody(SearchBody):
    """A query in one collection or file."""

    collection_name: Name


class QueryCollectionBody(SearchBody):
    """A query in several collections or files."""

    collection_names: Annotated[list[Name], Field(max_length=MAX_NAMES)]


class RetrievalRoutes:
    """Routes of search, and of file processing while the caller waits."""

    def __init__(
        self,
        retrieval: RetrievalService,
        scopes: ScopeResolver,
        configured: SearchOptions,
        processing: FileProcessing,
    ) -> None:
        self._retrieval = retrieval
        self._scopes = scopes
        self._configured = configured
        self._processing = processing

    def routes(self) -> Sequence[Route]:
        """Return the rows for stored files and texts."""
        access = RouteAccess.VERIFIED
        work = self._processing
        return [
            _row(
                "POST",
                "/query/doc",
                self.query_doc,
                access,
                "Search one collection or file",
                QueryDocBody,
                use=RequestUse.ANSWER,
            ),
            _row(
                "POST",
                "/query/collection",
                self.query_collection,
                access,
                "Search several collections or files",
                QueryCollectionBody,
                use=RequestUse.ANSWER,
            ),
            _row(
                "POST",
                "/query/explain",
                self.explain,
                access,
                "Search, and explain the rank of each passage",
                QueryCollectionBody,
                use=RequestUse.ANSWER,
            ),
            _row("POST", "/process/file", work.process_file, access, "Process a file", ProcessFileBody),
            _row(
                "POST", "/process/text", work.process_text, access, "Store a text as a file", ProcessTextBody
            ),
            _row(
                "POST",
                "/process/files/batch",
                work.process_batch,
                access,
                "Add files to a collection",
                ProcessBatchBody,
            ),
            _row(
                "POST",
                "/delete",
                work.delete,
                RouteAccess.ADMIN,
                "Remove a file from a collection",
                DeleteBody,
            ),
        ]

    @answers(documents.passages)
    async def query_doc(self, request: web.Request) -> web.StreamResponse:
        """`{"collection_name", "query", "k"?, "k_reranker"?, "r"?, "hybrid"?, "hybrid_bm25_weight"?}` ->
        `{"ids": [[..]], "documents": [[..]], "metadatas": [[..]], "distances": [[..]]}`, best first.

        `distances` are scores from 0 to 1. `warnings`, also in the header, lists the parts of the search that
        failed.
        """
        form = await read_model(request, QueryDocBody)
        return await self._found(actor(request), [form.collection_name], form)

    @answers(documents.passages)
    async def query_collection(self, request: web.Request) -> web.StreamResponse:
        """`{"collection_names", "query", ...}` -> a reply as of `query/doc`, over all collections."""
        form = await read_model(request, QueryCollectionBody)
        return await self._found(actor(request), form.collection_names, form)

    @answers(documents.explained_passages)
    async def explain(self, request: web.Request) -> web.StreamResponse:
        """`{"collection_names", "query", ...}` -> `{"passages": [{"id", "text", "file_id", "file", "path",
        "page", "heading", "start", "score", "similarity", "dense", "dense_rank", "lexical", "lexical_rank"}],
        "warnings"}`, best first.

        `score` and `similarity` are from 0 to 1. `dense` is the cosine and `lexical` the word score; their
        ranks count from 1. A value of a search that did not find the passage is null.
        """
        form = await read_model(request, QueryCollectionBody)
        found = await self._search(actor(request), form.collection_names, form)
        return json_reply(render_explanation(found), headers=warning_headers(found.warnings))

    async def _found(self, caller: Actor, names: Sequence[str], form: SearchBody) -> web.StreamResponse:
        found = await self._search(caller, names, form)
        return json_reply(render_search_result(found), headers=warning_headers(found.warnings))

    async def _search(self, caller: Actor, names: Sequence[str], form: SearchBody) -> RetrievalResult:
        scopes = [await self._scopes.named(caller, name) for name in dict.fromkeys(names)]
        with paid_by(caller):
            return await self._retrieval.search(scopes, form.query, form.options(self._configured))
