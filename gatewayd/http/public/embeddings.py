"""Embeddings, under every base address that OpenAI clients use."""

from collections.abc import Sequence

from aiohttp import web

from gatewayd.chat.embeddings import Embeddings
from gatewayd.dialects import embeddings as dialect
from gatewayd.http import body
from gatewayd.http.context import actor, request_id
from gatewayd.http.public.bases import BASES
from gatewayd.http.routes import Access, Dialect, Route
from gatewayd.jsonslices import LARGE


class EmbeddingRoutes:
    """Answers requests for vectors."""

    def __init__(self, embeddings: Embeddings, *, body_limit: int) -> None:
        self._embeddings = embeddings
        self._body_limit = body_limit

    def routes(self) -> Sequence[Route]:
        """Return one row for each base address."""
        return [
            Route(
                "POST",
                f"{base}/embeddings",
                self.embed,
                Access.VERIFIED,
                "Turn texts into vectors",
                dialect=Dialect.OPENAI,
                tag="embeddings",
                interruptible=True,
            )
            for base in BASES
        ]

    async def embed(self, request: web.Request) -> web.Response:
        """Answer `{"model", "input", "encoding_format"?, ...}` with a list of vectors."""
        asked = dialect.parse_request(await body.read_object(request, self._body_limit, LARGE))
        answer = await self._embeddings.run(asked.body, actor(request), request_id(request))
        rendered = dialect.render(answer, asked.model, asked.encoding_format)
        return web.Response(body=rendered, content_type="application/json")
