"""Runs the requests of batches through the pipeline, as the routes of their endpoints do."""

import asyncio
from contextlib import aclosing
from typing import Any, Final

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.batches.lines import MESSAGES_ENDPOINT
from gatewayd.batches.records import Batch
from gatewayd.catalog.interfaces import ForwardedAnswer
from gatewayd.completions.records import Body, Completion
from gatewayd.dialects import embeddings, openai
from gatewayd.dialects.anthropic import dialect as anthropic
from gatewayd.dialects.token_estimate import count_tokens
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.json_decoder import JsonLimits, decode
from gatewayd.pipeline.documents.plugin_context import CHAT_FIELDS
from gatewayd.pipeline.embeddings import EmbeddingService
from gatewayd.pipeline.filters.inputs import RequestCaller
from gatewayd.pipeline.media.endpoints import IMAGE_GENERATION, MODERATION, MediaEndpoint
from gatewayd.pipeline.media.service import MediaService
from gatewayd.pipeline.passthrough import RequestForwarder
from gatewayd.pipeline.pipeline import Pipeline
from gatewayd.pipeline.records import ChatAnswer
from gatewayd.text import MAX_ANSWER_DEPTH

MAX_ANSWER_BYTES: Final = 32 * 1024 * 1024
"""Maximum number of bytes of the answer to one request."""

ANSWER_LIMITS: Final = JsonLimits(
    containers=500_000, values=5_000_000, depth=MAX_ANSWER_DEPTH, has_exact_integers=False
)
"""Limits of the answer to one request, those of any whole answer."""

MEDIA: Final[dict[str, MediaEndpoint]] = {
    f"/v1{endpoint.path}": endpoint for endpoint in (IMAGE_GENERATION, MODERATION)
}


class BatchRequests:
    """Implements `batches.interfaces.RequestRunner`."""

    def __init__(
        self,
        pipeline: Pipeline,
        embedding: EmbeddingService,
        forwarding: RequestForwarder,
        media: MediaService,
    ) -> None:
        self._pipeline = pipeline
        self._embedding = embedding
        self._forwarding = forwarding
        self._media = media

    async def run(self, batch: Batch, body: Body, actor: Actor, request_id: str) -> Any:
        """Return the answer to a request to the endpoint of its batch."""
        caller = RequestCaller(actor, request_id)
        match batch.endpoint:
            case "/v1/chat/completions":
                return await self._complete(body, actor, request_id)
            case "/v1/embeddings":
                return await self._embed(body, caller)
            case "/v1/completions":
                return await read_answer(await self._forwarding.run("/completions", body, caller))
            case endpoint if endpoint == MESSAGES_ENDPOINT:
                return await self._answer_message(body, actor, request_id)
            case endpoint:
                return await read_answer(await self._media.run(MEDIA[endpoint], body, caller))

    async def _complete(self, body: Body, actor: Actor, request_id: str) -> Any:
        # No request of a batch belongs to a stored chat, whose owner nobody has checked.
        chat = openai.parse_request({name: value for name, value in body.items() if name not in CHAT_FIELDS})
        chat.request_id = request_id
        return _completion(await self._pipeline.run(chat, actor)).body

    async def _embed(self, body: Body, caller: RequestCaller) -> Any:
        asked = embeddings.parse_request(body)
        answer = await self._embedding.run(asked.body, caller)
        return await asyncio.to_thread(embeddings.reply_of, answer, asked.model, asked.encoding_format)

    async def _answer_message(self, body: Body, actor: Actor, request_id: str) -> Any:
        chat = anthropic.parse_request(body)
        chat.request_id = request_id
        answer = await self._pipeline.run(chat, actor)
        completion = _completion(answer)
        if answer.is_native:
            return completion.body or await _decoded(completion.raw)
        estimate = 0 if completion.body.get("usage") else count_tokens(body)
        return anthropic.render_completion(
            completion.body,
            chat.model,
            ids.new_id,
            input_tokens=estimate,
            stop_sequences=chat.body.get("stop") or [],
        )


def _completion(answer: ChatAnswer) -> Completion:
    if answer.completion is None:
        raise ValueError("a batch has whole answers")
    return answer.completion


async def read_answer(answer: ForwardedAnswer) -> Any:
    """Return the JSON of a forwarded answer; raise upstream_failed for another one."""
    data = bytearray()
    async with aclosing(answer):
        async for piece in answer:
            data += piece
            if len(data) > MAX_ANSWER_BYTES:
                raise _unusable(f"it is over {MAX_ANSWER_BYTES} bytes")
    return await _decoded(data)


async def _decoded(data: bytes | bytearray) -> Any:
    try:
        return await decode(data, ANSWER_LIMITS)
    except GatewayError as error:
        raise _unusable(error.message) from error


def _unusable(reason: str) -> GatewayError:
    return GatewayError(ErrorKind.UPSTREAM_FAILED, f"cannot use the answer of the provider: {reason}")
