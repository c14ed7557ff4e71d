"""Routes of embeddings in the OpenAI dialect."""

from collections.abc import Callable, Sequence
from functools import partial

from aiohttp import web

from gatewayd.accounts.records import Actor
from gatewayd.dialects import embeddings as dialect
from gatewayd.http import body
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import REQUEST_ID, caller_of
from gatewayd.http.public.completions import deployments
from gatewayd.http.public.completions.begun_reply import BegunReply
from gatewayd.http.public.completions.deployments import with_deployment
from gatewayd.http.reply_schemas import dialects
from gatewayd.http.responses.provider_headers import answer_headers
from gatewayd.http.routes import BASES, Route, RouteAccess, RouteDialect
from gatewayd.http.schemas import answers
from gatewayd.json_decoder import LARGE_LIMITS
from gatewayd.pipeline.embeddings import EmbeddingService
from gatewayd.pipeline.fast_embeddings import FastEmbeddings


class EmbeddingRoutes:
    """Routes of embeddings."""

    def __init__(
        self, embeddings: EmbeddingService, *, body_limit: int, fast: FastEmbeddings | None = None
    ) -> None:
        self._embeddings = embeddings
        self._fast = fast
        self._body_limit = body_limit

    def routes(self) -> Sequence[Route]:
        """Return one row for each base path, and that of Azure."""
        return [
            Route(
                "POST",
                f"{base}/embeddings",
                self.embed,
                RouteAccess.VERIFIED,
                "Embed texts",
                dialect=RouteDialect.OPENAI,
                tag="embeddings",
                interruptible=True,
                use=RequestUse.EMBEDDINGS,
                slashes=base == deployments.BASE,
                begin=None if self._fast is None else self.begin,
            )
            for base in (*BASES, deployments.BASE)
        ]

    def begin(
        self, request: web.Request, data: bytes, caller: Actor, arrived: Callable[[], None]
    ) -> BegunReply | None:
        """Begin a request as `routes.FastHandler` does."""
        value = body.read_at_once(data, LARGE_LIMITS) if len(data) <= self._body_limit else None
        if value is None or self._fast is None:
            return None
        asked = dialect.parse_request(value)
        render = partial(dialect.render, model=asked.model, encoding_format=asked.encoding_format)
        begun = self._fast.begin(asked.body, caller, request[REQUEST_ID], render, arrived)
        return None if begun is None else BegunReply(begun, RouteDialect.OPENAI)

    @answers(dialects.embeddings)
    async def embed(self, request: web.Request) -> web.Response:
        """Answer `{"model", "input", "encoding_format"?, ...}` with a list of vectors."""
        given = await body.read_object(request, self._body_limit, LARGE_LIMITS)
        asked = dialect.parse_request(with_deployment(request, given))
        caller = caller_of(request)
        answer = await self._embeddings.run(asked.body, caller)
        rendered = dialect.render(answer, asked.model, asked.encoding_format)
        headers = answer_headers(caller.reply_headers, RouteDialect.OPENAI)
        return web.Response(body=rendered, content_type="application/json", headers=headers)
