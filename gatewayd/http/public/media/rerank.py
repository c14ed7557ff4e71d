"""Routes of reranking, in the dialect of Cohere and Jina."""

from collections.abc import Sequence
from typing import Final

from aiohttp import web

from gatewayd import ids
from gatewayd.dialects import rerank as dialect
from gatewayd.http import body
from gatewayd.http.body import large_reply
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import caller_of
from gatewayd.http.routes import BASES, Route, RouteAccess, RouteDialect
from gatewayd.http.schemas import NUMBER, OBJECT, TEXT, answers, listed, record
from gatewayd.json_decoder import LARGE_LIMITS
from gatewayd.pipeline.media.rerank import RerankService

VERSION_2_PATH: Final = "/v2/rerank"
REPLY: Final = record(
    {"model": TEXT, "meta": OBJECT, "usage": OBJECT},
    id=TEXT,
    results=listed(record({"document": OBJECT}, index=NUMBER, relevance_score=NUMBER)),
)


class RerankRoutes:
    """Routes of reranking."""

    def __init__(self, rerank: RerankService, *, body_limit: int) -> None:
        self._rerank = rerank
        self._body_limit = body_limit

    def routes(self) -> Sequence[Route]:
        """Return one row for each base path, and that of version 2."""
        return [
            Route(
                "POST",
                path,
                self.rerank,
                RouteAccess.VERIFIED,
                "Sort documents by a query",
                dialect=RouteDialect.OPENAI,
                tag="media",
                interruptible=True,
                use=RequestUse.ANSWER,
            )
            for path in (*(f"{base}/rerank" for base in BASES), VERSION_2_PATH)
        ]

    @answers(REPLY)
    async def rerank(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"model", "query", "documents", "top_n"?, "return_documents"?}` with the scores."""
        asked = dialect.parse_request(await body.read_object(request, self._body_limit, LARGE_LIMITS))
        caller = caller_of(request)
        answer = await self._rerank.run(asked.body, caller)
        return await large_reply(dialect.render(answer, asked, ids.new_id()))
