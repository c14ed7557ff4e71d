"""Source for Bedrock of Amazon: the operations Converse, ConverseStream, and InvokeModel for vectors."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Self

from gatewayd import ids
from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Model
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.limits import AnswerSizeError
from gatewayd.completions.records import Body, Completion, CompletionChunk
from gatewayd.deadlines import TimeLimit
from gatewayd.dialects.bedrock.embeddings import form_of, to_requests, tokens_of
from gatewayd.dialects.bedrock.reply import ConverseDecoder, to_completion
from gatewayd.dialects.bedrock.request import to_request
from gatewayd.dialects.openai import wants_usage
from gatewayd.dialects.providers.family import canonical_name
from gatewayd.errors import ErrorKind
from gatewayd.upstream.http.client import UpstreamClient
from gatewayd.upstream.sources.bedrock_client import BedrockClient, shut_down
from gatewayd.upstream.sources.config import ProviderConfig
from gatewayd.upstream.sources.model_list import find_listed, select_models
from gatewayd.upstream.sources.model_rules import ModelRules

MAX_PAGES: Final = 20
"""Maximum number of pages of the list of inference profiles, of up to 1,000 each."""

MAX_EMBEDDINGS: Final = 16
"""Maximum number of requests for vectors at once; other calls find a thread beside them."""

_END: Final = object()


class BedrockSource:
    """A region of Bedrock, or a gateway with its API at the base URL.

    The key is a Bedrock API key, `ACCESS_KEY:SECRET_KEY` or `ACCESS_KEY:SECRET_KEY:SESSION_TOKEN`; without
    one the library finds the credentials of the machine.
    """

    def __init__(self, config: ProviderConfig, client: UpstreamClient | None = None) -> None:
        self._config = replace(config, maker=config.maker or "bedrock")
        self._client = BedrockClient(self._config)
        self._rules = ModelRules(self._config)
        self._embedding = asyncio.Semaphore(max(1, min(MAX_EMBEDDINGS, config.connections // 2)))
        self._unused = client

    @property
    def name(self) -> str:
        """The provider's name."""
        return self._config.name

    @property
    def model_prefix(self) -> str:
        """Prefix that the ids of callers have before the provider's own ids."""
        return self._config.prefix

    async def list_models(self) -> Sequence[Model]:
        """Fetch the models of texts and of vectors, and the inference profiles, see `find_listed`."""
        found = await find_listed(self._config, self._fetch_list)
        return await select_models(self._config, found, "amazon", self._detail)

    def prepares(self, model: Model) -> bool:
        """Return False if the messages of a model's requests stay as they are."""
        return self._rules.repairs(model)

    async def prepare(self, body: Body, model: Model, context: CallContext) -> Body:
        """Return a chat request with its messages as the model takes them."""
        return await self._rules.repair(body, model, context)

    async def complete(self, body: Body, model: Model, context: CallContext) -> Completion:
        """Return a whole answer."""
        request = self._request(body, model, context)
        answer = await self._client.call("bedrock-runtime", "converse", request, context)
        try:
            completion = to_completion(answer, f"chatcmpl-{ids.new_id()}", ids.now(), model.upstream_id)
        except AnswerSizeError as error:
            raise self._client.failures.broken(error.reason) from error
        return Completion(body=completion)

    def stream(self, body: Body, model: Model, context: CallContext) -> "ConverseChunks":
        """Return the answer in chunks."""
        decoder = ConverseDecoder(
            f"chatcmpl-{ids.new_id()}", ids.now(), model.upstream_id, include_usage=wants_usage(body)
        )
        request = self._request(body, model, context)
        return ConverseChunks(self._client, self._config, request, context, decoder)

    async def embed(self, body: Body, model: Model, context: CallContext) -> Body:
        """Return vectors for a list of texts, in their order; a model may take one text in a request."""
        form = form_of(model.upstream_id) or form_of(model.family or "")
        if form is None:
            sentence = f"the form of embeddings of model {model.upstream_id!r} is not known"
            raise self._client.failures.error(ErrorKind.NOT_FOUND, sentence)
        requests = list(to_requests(body, form))
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._invoke(each, model, context)) for each in requests]
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from failures
        answers = [task.result() for task in tasks]
        vectors = [vector for answer, _ in answers for vector in form.vectors(answer)]
        data = [
            {"object": "embedding", "index": index, "embedding": vector}
            for index, vector in enumerate(vectors)
        ]
        tokens = sum(tokens_of(answer, headers) for answer, headers in answers)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"object": "list", "data": data, "model": model.upstream_id, "usage": usage}

    async def close(self) -> None:
        """Close all connections."""
        self._client.close()
        if self._unused is not None:
            await self._unused.close()

    async def _invoke(
        self, request: Body, model: Model, context: CallContext
    ) -> tuple[dict[str, Any], dict[str, str]]:
        async with self._embedding:
            return await self._client.invoke(model.upstream_id, request, context)

    def _request(self, body: Body, model: Model, context: CallContext) -> Body:
        adapted = self._rules.adapt(body, model, context)
        warnings: list[str] = []
        request = to_request(adapted, canonical_name(model.family or model.upstream_id), warnings)
        for sentence in warnings:
            self._rules.warn(sentence, model, context)
        return request

    async def _fetch_list(self) -> list[dict[str, Any]]:
        found = []
        for modality in ("TEXT", "EMBEDDING"):
            chosen = {"byOutputModality": modality, "byInferenceType": "ON_DEMAND"}
            answer = await self._client.call("bedrock", "list_foundation_models", chosen)
            summaries = as_sequence(answer.get("modelSummaries"))
            found += [_listed(item, "modelId", "modelName") for item in summaries]
        parameters: dict[str, Any] = {"maxResults": 1000}
        for _ in range(MAX_PAGES):
            page = await self._client.call("bedrock", "list_inference_profiles", parameters)
            summaries = as_sequence(page.get("inferenceProfileSummaries"))
            found += [_listed(item, "inferenceProfileId", "inferenceProfileName") for item in summaries]
            if not page.get("nextToken"):
                return found
            parameters["nextToken"] = page["nextToken"]
        raise self._client.failures.broken(f"its list of profiles has over {MAX_PAGES} pages")

    def _detail(self, item: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"openai": item, "urlIdx": self._config.index}


class ConverseChunks:
    """An iterator of chunks; the first step sends the request.

    Its end, a failure, cancellation and `aclose` end the connection at once.
    """

    def __init__(
        self,
        client: BedrockClient,
        config: ProviderConfig,
        request: Body,
        context: CallContext,
        decoder: ConverseDecoder,
    ) -> None:
        self._client = client
        self._timeouts = config.timeouts
        self._request = request
        self._context = context
        self._decoder = decoder
        self._stream: Any = None
        self._events: Any = None
        self._job: asyncio.Future[Any] | None = None
        self._has_slot = False
        self._is_closed = False

    def __aiter__(self) -> Self:
        """Return itself: an answer is read once."""
        return self

    async def __anext__(self) -> CompletionChunk:
        """Return the next chunk; raises GatewayError."""
        alive = False
        try:
            chunk = await self._next()
            alive = True
        except AnswerSizeError as error:
            raise self._client.failures.broken(error.reason) from error
        except TimeoutError as error:
            raise self._client.late() from error
        finally:
            if not alive:
                self._close()
        return chunk

    async def aclose(self) -> None:
        """End the connection of the provider at once."""
        self._close()

    async def _next(self) -> CompletionChunk:
        while True:
            if self._is_closed:
                raise StopAsyncIteration
            is_first = self._events is None
            async with TimeLimit(self._timeouts.first_byte if is_first else self._timeouts.idle):
                if is_first:
                    await self._begin()
                event = await self._step(lambda: next(self._events, _END))
            if event is _END:
                if not self._decoder.is_complete:
                    raise self._client.failures.broken("its answer ended before it was complete")
                raise StopAsyncIteration
            chunks = self._decoder.decode(event)
            if chunks:
                return CompletionChunk(events=chunks)

    async def _begin(self) -> None:
        await self._client.take_slot()
        self._has_slot = True
        await self._step(self._open)

    async def _step(self, work: Callable[[], Any]) -> Any:
        self._job = self._client.submit(work)
        return await asyncio.shield(self._job)

    def _open(self) -> None:
        """Send the request, in a thread; a stream that came too late is ended."""
        self._stream = self._client.open(self._request, self._context)
        self._events = iter(self._stream)
        if self._is_closed:
            shut_down(self._stream)

    def _close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._job is None or self._job.done():
            self._release()
            return
        # Its thread ends once it can read no more.
        self._job.add_done_callback(lambda _: self._release())
        if self._stream is not None:
            shut_down(self._stream)

    def _release(self) -> None:
        if self._stream is not None:
            self._stream.close()
        if self._has_slot:
            self._client.give_slot()


def _listed(item: Any, id_name: str, name: str) -> dict[str, Any]:
    known = as_mapping(item)
    return {"id": as_text(known.get(id_name)), "name": as_text(known.get(name))}
