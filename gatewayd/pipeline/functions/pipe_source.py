"""Function models: the pipes of plugins as a model source (gatewayd-plugins(7), KINDS)."""

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from copy import deepcopy
from http import HTTPStatus
from typing import Any, Final

import orjson
from pydantic import BaseModel

from gatewayd.accounts.records import Actor, CredentialKind, Role, User
from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Model
from gatewayd.catalog.service import Catalog
from gatewayd.completions.deltas import error_message_in
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.provider_errors import OVERFLOW, parse_reported_failure
from gatewayd.completions.records import Body, Completion, CompletionChunk
from gatewayd.deadlines import TimeLimit
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.events.records import EventTarget
from gatewayd.pipeline.functions.output import (
    CompletionBuilder,
    PipeReader,
    mapping_completion,
    normalise_item,
    text_completion,
)
from gatewayd.pipeline.functions.sse_text import DATA_PREFIX
from gatewayd.pipeline.runs.interfaces import EventEmitter
from gatewayd.plugins.records import Plugin, PluginFamily, PluginKind
from gatewayd.plugins.registry import PluginManager
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.plugins.runtime.interfaces import PluginHandle
from gatewayd.plugins.runtime.iterators import PluginIterator
from gatewayd.tasks import TaskRegistry

log = logging.getLogger(__name__)

FUNCTION_SOURCE: Final = "functions"
"""Name of the source of function models, which every gateway has."""

LISTING_SECONDS: Final = 1.0
"""Maximum time that a pipe may take to list its models before the list omits it. It is shorter than the time
that clients wait for a first list."""

LOADING_SECONDS: Final = 20.0
"""Maximum time that a request waits for its pipe to load: as long as a start with many plugins."""

_MISSING: Final = object()
_NO_ACTOR: Final = Actor(User("", "", "", Role.PENDING), CredentialKind.CONTROL, (), {})


class FunctionSource:
    """A `catalog.interfaces.ModelSource` of the active pipes; a failing pipe does not affect the others."""

    def __init__(
        self,
        registry: PluginManager,
        events: EventEmitter,
        tasks: TaskRegistry,
        *,
        seconds: float = LISTING_SECONDS,
    ) -> None:
        self._registry = registry
        self._events = events
        self._tasks = tasks
        self._seconds = seconds
        self._listing: set[str] = set()
        self._late: set[str] = set()
        self._known: dict[str, tuple[str, Sequence[Model]]] = {}

        self.on_late: Callable[[], None] = lambda: None
        """Called when a pipe returned a changed list of models too late for the listing."""

    @property
    def name(self) -> str:
        """Name in messages and logs."""
        return FUNCTION_SOURCE

    async def list_models(self) -> Sequence[Model]:
        """Return the models of all active pipes; a failing pipe is omitted."""
        found = (
            self._registry.list(PluginFamily.FUNCTION, PluginKind.PIPE) if self._registry.is_running else ()
        )
        pipes = [plugin for plugin in found if plugin.is_active]
        kept = {plugin.id for plugin in pipes}
        self._known = {name: known for name, known in self._known.items() if name in kept}
        listed = await asyncio.gather(*(self._models(plugin) for plugin in pipes))
        return [model for models in listed for model in models]

    async def load_model(self, model_id: str) -> bool:
        """Wait for the pipe of a model if it is not loaded yet, as after a start."""
        plugin = self._registry.find(PluginFamily.FUNCTION, model_id.partition(".")[0])
        if plugin is None or plugin.kind is not PluginKind.PIPE or not plugin.is_active:
            return False
        if self._registry.find_loaded(plugin.family, plugin.id) is not None:
            return False
        try:
            async with TimeLimit(LOADING_SECONDS):
                await self._registry.loaded(plugin.family, plugin.id)
        except (GatewayError, TimeoutError):
            return False
        return True

    async def complete(self, body: Body, model: Model, context: CallContext) -> Completion:
        """Return the result of the pipe as a completion; raise plugin_failed if it fails."""
        call = await self._find(model, context)
        value = await call.run(body, stream=False)
        if value is None or (isinstance(value, str) and not value.startswith(DATA_PREFIX)):
            return Completion(body=text_completion(model.upstream_id, value))
        if isinstance(value, dict) and as_sequence(value.get("choices")):
            return Completion(body=mapping_completion(model.upstream_id, value))
        builder = CompletionBuilder()
        async with aclosing(call.events(value)) as groups:
            async for group in groups:
                for event in group:
                    builder.add(event)
        return Completion(body=builder.body(model.upstream_id))

    async def stream(self, body: Body, model: Model, context: CallContext) -> AsyncGenerator[CompletionChunk]:
        """Yield each item of the pipe immediately; closing the generator ends the pipe."""
        call = await self._find(model, context)
        value = await call.run(body, stream=True)
        async with aclosing(call.events(value)) as groups:
            async for group in groups:
                yield CompletionChunk(events=group)

    async def close(self) -> None:
        """Do nothing, because the registry owns the plugins."""

    async def _find(self, model: Model, context: CallContext) -> "_Call":
        plugin = self._registry.find(PluginFamily.FUNCTION, model.upstream_id.partition(".")[0])
        if plugin is None or plugin.kind is not PluginKind.PIPE or not plugin.is_active:
            raise not_found("model", model.id)
        loaded = await self._registry.loaded(plugin.family, plugin.id)
        return _Call(loaded, model.upstream_id, _scope_of(context), self._events)

    async def _models(self, plugin: Plugin) -> Sequence[Model]:
        """Return the models of one pipe; while it is still listing, the previous ones.

        A pipe that has just finished a late listing is not listed again immediately.
        """
        if plugin.id not in self._listing and not self._is_late_listing(plugin):
            self._listing.add(plugin.id)
            try:
                async with TimeLimit(self._seconds):
                    await self._tasks.finish(f"models of function {plugin.id}", self._ask(plugin))
            except TimeoutError:
                self._late.add(plugin.id)
                log.warning("models not listed yet: the function is slow", extra={"plugin": plugin.id})
        content, models = self._known.get(plugin.id, ("", ()))
        return models if content == plugin.content else ()

    def _is_late_listing(self, plugin: Plugin) -> bool:
        """Return True if the known models came too late for the last listing and serve this one."""
        is_late = plugin.id in self._late
        self._late.discard(plugin.id)
        return is_late and self._known.get(plugin.id, ("",))[0] == plugin.content

    async def _ask(self, plugin: Plugin) -> None:
        before = self._known.get(plugin.id)
        try:
            loaded = await self._registry.loaded(plugin.family, plugin.id)
            self._known[plugin.id] = (plugin.content, await list_pipes(loaded))
        except GatewayError as error:
            self._known.pop(plugin.id, None)
            log.warning("models not listed: %s", error.full_message, extra={"plugin": plugin.id})
        finally:
            self._listing.discard(plugin.id)
            if self._known.get(plugin.id) == before:
                self._late.discard(plugin.id)
            elif plugin.id in self._late:
                self.on_late()


def refresh_listener(catalog: Catalog, source: FunctionSource) -> Callable[[Plugin], None]:
    """Return a registry listener that refreshes the function models when a pipe changes.

    A late listing also refreshes them.
    """

    def renew() -> None:
        catalog.renew(source)

    def changed(plugin: Plugin) -> None:
        if plugin.kind is PluginKind.PIPE:
            renew()

    source.on_late = renew
    return changed


class _Call:
    """One call of a pipe."""

    def __init__(self, loaded: PluginHandle, model: str, scope: CallScope, events: EventEmitter) -> None:
        self._loaded = loaded
        self._model = model
        self._scope = scope
        self._events = events

    async def run(self, body: Body, *, stream: bool) -> Any:
        """Return the pipe's result: a `PluginIterator` for iterators and streams, a mapping for a model."""
        form = {name: value for name, value in deepcopy(body).items() if name != "metadata"}
        form |= {"model": self._model, "stream": stream}
        value = await self._loaded.call("pipe", self._scope, {"body": form})
        if _has(value, "body_iterator"):
            return self._loaded.items(value.body_iterator)
        if _has(value, "body") and _has(value, "status_code"):
            value = self._body_of(value)
        value = normalise_item(value) if isinstance(value, BaseModel) else value
        if isinstance(value, dict):
            self._check(value)
        return value

    async def events(self, value: Any) -> AsyncGenerator[list[Body]]:
        """Yield the chunks of each item; emit events among them, and raise an error."""
        reader = PipeReader(self._model)
        if isinstance(value, PluginIterator):
            async with aclosing(value):
                async for item in value:
                    group = await self._passing(reader.feed(item))
                    if group:
                        yield group
        else:
            for item in value if isinstance(value, list | tuple) else [value]:
                group = await self._passing(reader.feed(item))
                if group:
                    yield group
        group = await self._passing(reader.finish())
        if group:
            yield group

    async def _passing(self, events: list[Body]) -> list[Body]:
        passing = []
        for event in events:
            if "choices" in event:
                passing.append(event)
                continue
            self._check(event)
            await self._events.emit(self._scope.target, event.get("event"))
        return passing

    def _check(self, event: Body) -> None:
        """Raise plugin_failed for an error in place of an answer."""
        if event.get("error") and not event.get("choices"):
            raise self._failure(event["error"])

    def _body_of(self, response: Any) -> Any:
        """Return the JSON or text of an unstreamed response."""
        content = response_text(response.body)
        try:
            value = orjson.loads(content)
        except orjson.JSONDecodeError:
            value = content
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            known = as_mapping(value)
            raise self._failure(known.get("error") or known.get("detail") or content)
        return value

    def _failure(self, error: Any) -> GatewayError:
        text = error_message_in(error) or orjson.dumps(error, default=str).decode()
        sentence = f"pipe {self._loaded.plugin.id}: {text}"
        reported = parse_reported_failure({"error": error}, sentence)
        kind = ErrorKind.INVALID_REQUEST if reported.code == OVERFLOW else ErrorKind.PLUGIN_FAILED
        return GatewayError(kind, sentence, param=reported.param, provider_code=reported.code)


async def list_pipes(loaded: PluginHandle) -> Sequence[Model]:
    """Return the models of a pipe: one, or those that `pipes` returns, each `<function id>.<id>`.

    The pipe's `name` is their prefix. Raises plugin_failed if `pipes` fails or returns no list.
    """
    plugin = loaded.plugin
    found = await loaded.read("pipes")
    if callable(found):
        scope = CallScope(_NO_ACTOR, EventTarget(""))
        found = await loaded.call("pipes", scope, {})
    elif not isinstance(found, list | tuple):
        return [_model(loaded, plugin.id, plugin.name)]
    if isinstance(found, PluginIterator):
        async with aclosing(found):
            found = [item async for item in found]
    if not isinstance(found, list | tuple):
        sentence = f"pipe {plugin.id}: pipes returned a {type(found).__name__}, not a list"
        raise GatewayError(ErrorKind.PLUGIN_FAILED, sentence)
    prefix = as_text(await loaded.read("name"))
    listed: dict[str, Model] = {}
    for item in found:
        sub_id = as_text(as_mapping(item).get("id"))
        if not sub_id:
            log.warning("model without an id skipped", extra={"plugin": plugin.id})
            continue
        name = f"{prefix}{as_text(item.get('name')) or sub_id}"
        listed[sub_id] = _model(loaded, f"{plugin.id}.{sub_id}", name)
    return list(listed.values())


def _model(loaded: PluginHandle, model_id: str, name: str) -> Model:
    return Model(
        id=model_id,
        name=name,
        owned_by="openai",
        source=FUNCTION_SOURCE,
        upstream_id=model_id,
        created=loaded.plugin.created_at,
        connection_type="local",
        detail={"pipe": {"type": "pipe"}, "has_user_valves": loaded.has_user_valves()},
    )


def response_text(content: Any) -> str:
    """Return the text of a response body."""
    if isinstance(content, bytes | memoryview):
        return bytes(content).decode("utf-8", "replace")
    return str(content)


def _has(value: Any, name: str) -> bool:
    """Return True if a value has an attribute, without running code of the plugin."""
    return inspect.getattr_static(value, name, _MISSING) is not _MISSING


def _scope_of(context: CallContext) -> CallScope:
    """Return the scope of a call; a call without one gets an actor that has only an id, a name and a role."""
    if isinstance(context.scope, CallScope):
        return context.scope
    role = Role(context.user_role) if context.user_role else Role.PENDING
    user = User(context.user_id, context.user_email, context.user_name, role)
    actor = Actor(user, CredentialKind.SESSION, (), {})
    return CallScope(actor, EventTarget(context.user_id))
