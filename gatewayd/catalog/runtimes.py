"""Local model runtimes: lookup of their models, and forwarding of native requests."""

import asyncio
import itertools
import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

import orjson

from gatewayd.catalog.failover import Candidate, foresee
from gatewayd.catalog.interfaces import CallContext, ForwardedAnswer, RuntimeSource, Viewer
from gatewayd.catalog.model_names import model_name_variants
from gatewayd.catalog.records import Model
from gatewayd.catalog.service import MAX_ID_LENGTH, Catalog
from gatewayd.completions.records import Body
from gatewayd.deadlines import TimeLimit
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.metering.answers import MeteredReply
from gatewayd.metering.limit_headers import add_limit_headers
from gatewayd.metering.records import MeteredCaller

log = logging.getLogger(__name__)

NAME_FIELDS: Final = frozenset({"model", "name"})
"""Fields that name a model; a runtime reads them case-insensitively."""

MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024
"""Maximum size of a reply that is merged with others."""

ASK_SECONDS: Final = 10.0
"""Maximum duration of one runtime's reply when several replies are merged."""

EMBEDDINGS: Final = "embeddings"
ENDPOINTS: Final = {
    "/api/chat": "chat",
    "/api/generate": "completions",
    "/api/embed": EMBEDDINGS,
    "/api/embeddings": EMBEDDINGS,
}
"""Paths whose requests a model answers, with the words of `pipeline.records.Endpoint`."""

NUMBER_PATTERN: Final = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class ModelRuntime:
    """One runtime; `index` is its position among the runtimes, `models` maps callers' ids to its models."""

    index: int
    source: RuntimeSource
    models: Mapping[str, Model]

    def find(self, model_id: str) -> Model | None:
        """Return the model with this callers' id."""
        return self.models.get(model_id)

    def own_name(self, model_id: str) -> str:
        """Return the runtime's own name of a model, listed or not."""
        model = self.find(model_id)
        return model.upstream_id if model else model_id.removeprefix(self.source.prefix)


@dataclass(frozen=True, slots=True)
class RuntimeModel:
    """A model that the viewer may use, and the runtimes that list it (none for models of other sources).

    `source` is the provider that the caller names, "" for any. `is_local` is set if all sources of the model
    are runtimes.
    """

    model: Model
    hosts: Sequence[ModelRuntime]
    source: str = ""
    is_local: bool = False


class ModelRuntimes:
    """The runtimes among the sources of the catalog, in their order."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._rotation = itertools.count()

    def all(self) -> Sequence[ModelRuntime]:
        """Return the runtimes with their last known models."""
        indices = itertools.count()
        return [
            ModelRuntime(next(indices), item.source, item.by_id)
            for item in self._catalog.listings()
            if isinstance(item.source, RuntimeSource)
        ]

    async def find(self, name: str, viewer: Viewer, index: int | None = None) -> RuntimeModel:
        """Return the model with this name if the viewer may use it.

        A name without a tag stands for its tag `latest`. An unknown model, a forbidden one, and one that is
        not on the runtime at `index` raise the same not_found.
        """
        for model_id in model_name_variants(name):
            try:
                candidates = await self._catalog.candidates(model_id, viewer)
            except GatewayError as error:
                if error.kind is not ErrorKind.NOT_FOUND:
                    raise
                continue
            model = candidates[0].model
            hosts = [runtime for runtime in self.all() if runtime.find(model.id)]
            is_local = all(isinstance(found.source, RuntimeSource) for found in candidates)
            if index is None:
                return RuntimeModel(model, hosts, is_local=is_local)
            hosts = [runtime for runtime in hosts if runtime.index == index]
            if hosts:
                return RuntimeModel(model, hosts, hosts[0].source.name, is_local=True)
        raise model_not_found(name)

    async def forward(
        self,
        found: RuntimeModel,
        path: str,
        body: Body,
        context: CallContext,
        caller: MeteredCaller | None = None,
    ) -> tuple[str, ForwardedAnswer]:
        """Forward a request about a model to one of its runtimes, in rotation; one of a `caller` is metered.

        `body` uses the caller's names. Returns the runtime's name with its reply. If a runtime is unreachable
        or refuses temporarily, the next one is tried, because the first has done nothing. The reply headers
        of `context` are those of the runtime and of the limits.
        """
        first = next(self._rotation) % len(found.hosts)
        hosts = [*found.hosts[first:], *found.hosts[:first]]
        candidates = [
            Candidate(model, host.source)
            for host in hosts
            if (model := host.find(found.model.id)) is not None
        ]

        async def ask(model: Model, source: RuntimeSource) -> tuple[str, ForwardedAnswer]:
            return source.name, await source.forward(
                "POST", path, with_model_name(body, model.upstream_id), context
            )

        endpoint = ENDPOINTS.get(path)
        if endpoint is None or caller is None:
            return await self._catalog.failover.ask(candidates, ask)
        meter = self._catalog.meter
        call = context.call = meter.begin(
            caller,
            found.model.id,
            endpoint,
            body,
            request_id=context.request_id,
            is_stream=endpoint != EMBEDDINGS and body.get("stream") is not False,
        )
        foresee(call, candidates[0].model, candidates[0].source.name)
        name, answer = await meter.run(call, self._catalog.failover.ask, candidates, ask, call)
        if call.admissions:
            add_limit_headers(call, context.reply_headers)
        return name, MeteredReply(answer, call, meter)

    async def tags(self, viewer: Viewer, index: int | None = None) -> Sequence[Body]:
        """Return the runtimes' models that the viewer may use, each once, in the runtimes' format."""
        visible = await self._catalog.list(viewer)
        runtimes = self.all() if index is None else [self._at(index)]
        entries = []
        for model in visible:
            hosts = [runtime for runtime in runtimes if runtime.find(model.id)]
            if hosts:
                entries.append(_tag(model.id, hosts))
        return entries

    async def locals(self, viewer: Viewer) -> Sequence[Model]:
        """Return the local models that the viewer may use and that no runtime lists."""
        visible = await self._catalog.list(viewer)
        runtimes = self.all()
        return [
            model
            for model in visible
            if model.connection_type == "local" and not any(runtime.find(model.id) for runtime in runtimes)
        ]

    async def loaded(self, viewer: Viewer, index: int | None = None) -> Sequence[Body]:
        """Return the models in memory that the viewer may use, with the ids of callers."""
        visible = {model.id for model in await self._catalog.list(viewer)}
        entries = []
        for runtime, answer in await self._merged("/api/ps", index):
            running = answer.get("models")
            for entry in running if isinstance(running, list) else ():
                model_id = _listed_id(runtime, entry)
                if model_id in visible:
                    entries.append({**entry, "name": model_id, "model": model_id, "urls": [runtime.index]})
        return entries

    async def version(self, index: int | None = None) -> str | None:
        """Return the lowest version of the runtimes; None if there is no runtime."""
        answers = await self._merged("/api/version", index)
        versions = [answer["version"] for _, answer in answers if isinstance(answer.get("version"), str)]
        return min(
            versions, key=lambda text: [int(part) for part in NUMBER_PATTERN.findall(text)], default=None
        )

    async def place(self, name: str, index: int | None = None) -> ModelRuntime:
        """Return the runtime that is to store or remove a model of this name.

        The choice is the runtime at `index`; else the first that has the model or whose prefix begins the
        name; else the first of all. Raises not_found if there is none.
        """
        await self._catalog.list_all()
        runtimes = self.all()
        if index is not None:
            return self._at(index)
        if not runtimes:
            raise GatewayError(ErrorKind.NOT_FOUND, "cannot find a runtime: no model runtime is configured")
        for runtime in runtimes:
            if any(runtime.find(model_id) for model_id in model_name_variants(name)):
                return runtime
        meant = (item for item in runtimes if item.source.prefix and name.startswith(item.source.prefix))
        return next(meant, runtimes[0])

    async def refresh(self, runtime: ModelRuntime) -> None:
        """Fetch the models of a runtime again, because they have changed."""
        await self._catalog.refresh(runtime.source)

    def _at(self, index: int) -> ModelRuntime:
        runtimes = self.all()
        if index >= len(runtimes):
            raise not_found("runtime", str(index))
        return runtimes[index]

    async def _merged(self, path: str, index: int | None) -> Sequence[tuple[ModelRuntime, Mapping[str, Any]]]:
        """Return the replies of the runtimes that answered; raise the first error if none did."""
        runtimes = self.all() if index is None else [self._at(index)]
        answers = await asyncio.gather(*(_ask(runtime, path) for runtime in runtimes))
        good = [
            (runtime, answer)
            for runtime, answer in zip(runtimes, answers, strict=True)
            if not isinstance(answer, GatewayError)
        ]
        for answer in answers:
            if isinstance(answer, GatewayError) and not good:
                raise answer
            if isinstance(answer, GatewayError):
                log.warning("runtime skipped: %s", answer.message)
        return good


def model_not_found(name: str) -> GatewayError:
    """Return the error for a model that does not exist or that the caller may not use."""
    return GatewayError(
        ErrorKind.NOT_FOUND,
        f"model {name[:MAX_ID_LENGTH]!r} not found",
        param="model",
        code="model_not_found",
    )


def with_model_name(body: Body, own_name: str) -> Body:
    """Return a request with the runtime's own model name, and with no other spelling of the name fields."""
    kept = {key: value for key, value in body.items() if key.casefold() not in NAME_FIELDS}
    return {**kept, "model": own_name, **({"name": own_name} if "name" in body else {})}


def _tag(model_id: str, hosts: Sequence[ModelRuntime]) -> Body:
    model = next(filter(None, (runtime.find(model_id) for runtime in hosts)))
    return {
        **model.detail.get("ollama", {}),
        "name": model_id,
        "model": model_id,
        "urls": [runtime.index for runtime in hosts],
        "connection_type": model.connection_type,
    }


def _listed_id(runtime: ModelRuntime, entry: object) -> str | None:
    """Return the callers' id of a model that a runtime lists under its own name."""
    if not isinstance(entry, dict):
        return None
    own_name = entry.get("model") or entry.get("name")
    return next((model.id for model in runtime.models.values() if model.upstream_id == own_name), None)


async def _ask(runtime: ModelRuntime, path: str) -> Body | GatewayError:
    """Return the JSON object at a path of a runtime, or the error."""
    refusal = f"cannot get an answer from provider {runtime.source.name!r}: "
    try:
        async with TimeLimit(ASK_SECONDS):
            answer = orjson.loads(await _read(await runtime.source.forward("GET", path, None)))
    except GatewayError as error:
        return error
    except TimeoutError:
        return GatewayError(ErrorKind.TIMEOUT, f"{refusal}nothing came within {ASK_SECONDS:g} s")
    except orjson.JSONDecodeError:
        return GatewayError(ErrorKind.UPSTREAM_FAILED, f"{refusal}its answer is not JSON")
    if not isinstance(answer, dict):
        return GatewayError(ErrorKind.UPSTREAM_FAILED, f"{refusal}its answer is not a JSON object")
    return answer


async def _read(answer: ForwardedAnswer) -> bytearray:
    data = bytearray()
    async with aclosing(answer):
        async for read in answer:
            data += read
            if len(data) > MAX_ANSWER_BYTES:
                raise GatewayError(
                    ErrorKind.UPSTREAM_FAILED,
                    f"cannot read a runtime's answer: it is over {MAX_ANSWER_BYTES} bytes",
                )
    return data
