"""The filters of plugins (4.2, 4.3, 4.4): which run for a request, and what becomes of what they return."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any, Final

from gatewayd.accounts.records import Actor
from gatewayd.catalog.records import Model, ModelRecord
from gatewayd.completions.copies import copy_json
from gatewayd.completions.records import Body, Completion, CompletionChunk
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.documents.model_info import assigned_ids
from gatewayd.pipeline.documents.plugin_context import filter_ids, make_scope
from gatewayd.pipeline.filters.context import FilterContext, json_problem
from gatewayd.pipeline.interfaces import ChatFilter, FilterChain
from gatewayd.pipeline.records import ChatRequest
from gatewayd.plugins.records import Plugin, PluginFamily, PluginKind
from gatewayd.plugins.registry import PluginManager
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.plugins.runtime.handles import PluginHandle
from gatewayd.plugins.runtime.instance import STREAM_METHOD, STREAM_PARAMETER
from gatewayd.plugins.runtime.invoke import PluginError
from gatewayd.plugins.runtime.repeated_calls import RepeatedCall, Result

log = logging.getLogger(__name__)

FindRecord = Callable[[str], ModelRecord | None]
"""Returns what an administrator keeps about a model."""

_KINDS: Final = {
    401: ErrorKind.UNAUTHENTICATED,
    403: ErrorKind.FORBIDDEN,
    404: ErrorKind.NOT_FOUND,
    409: ErrorKind.CONFLICT,
    413: ErrorKind.TOO_LARGE,
    429: ErrorKind.RATE_LIMITED,
    503: ErrorKind.UNAVAILABLE,
    504: ErrorKind.TIMEOUT,
}


@dataclass(frozen=True, slots=True)
class FiltersByHook:
    """The filters of one request, by hook."""

    inlets: tuple[ChatFilter, ...] = ()
    streams: tuple[ChatFilter, ...] = ()
    outlets: tuple[ChatFilter, ...] = ()
    handles_files: bool = False


EMPTY_CHAIN: Final = FiltersByHook()


class PluginFilters:
    """Chooses the filter functions of a request: a `chat.interfaces.ChatFilters`.

    `runs_outlets` tells whether outlets run on the answers of direct calls, too.
    """

    def __init__(
        self,
        registry: PluginManager,
        find_record: FindRecord,
        runs_outlets: Callable[[], bool] = lambda: False,
    ) -> None:
        self._registry = registry
        self._find_record = find_record
        self._runs_outlets = runs_outlets
        self._known: Sequence[Plugin] | None = None
        registry.subscribe(self._forget)

    async def choose(self, request: ChatRequest, model: Model, actor: Actor) -> FilterChain:
        """Return the filters for the request, by priority, without those that it has met already.

        A filter that does not load refuses the request (plugin_failed): a policy is never left out silently.
        """
        found = self._active(model.id)
        if not found:
            return EMPTY_CHAIN
        if request.scope is not None:
            found = [plugin for plugin in found if plugin.id not in request.scope.filtered]
        chosen = _ordered([await self._loaded(plugin) for plugin in found], filter_ids(request.options))
        if not chosen:
            return EMPTY_CHAIN
        if request.scope is None:
            request.scope = make_scope(request, model, self._find_record(model.id), actor)
        is_direct = not request.scope.target.message_id and request.scope.task is None
        return _chain(chosen, FilterContext(request, request.scope), is_direct and self._runs_outlets())

    async def are_on(self, model_id: str) -> bool:
        """Tell whether filters run for requests to a model that switch none on.

        Raises plugin_failed for a filter that does not load.
        """
        found = self._active(model_id)
        loaded = [await self._loaded(plugin) for plugin in found]
        return any(item.has("inlet") or item.has("stream") for item in _ordered(loaded, ()))

    async def list_with_outlet(
        self, model_id: str, wanted: Sequence[str], *, strict: bool
    ) -> Sequence[PluginHandle]:
        """Return the filters of a model that have an outlet, by priority.

        With `strict` one that does not load raises plugin_failed; else it is logged and left out.
        """
        loaded: list[PluginHandle] = []
        for plugin in self._active(model_id):
            try:
                loaded.append(await self._loaded(plugin))
            except GatewayError as error:
                if strict:
                    raise
                log.warning("an outlet is left out: %s", error.full_message, extra={"plugin": plugin.id})
        return [item for item in _ordered(loaded, wanted) if item.has("outlet")]

    def _active(self, model_id: str) -> Sequence[Plugin]:
        if self._known is None:
            # Whoever runs the gateway may have said that no plugin is to run.
            is_running = self._registry.is_running
            plugins = self._registry.list(PluginFamily.FUNCTION, PluginKind.FILTER) if is_running else ()
            self._known = [plugin for plugin in plugins if plugin.is_active]
        if not self._known:
            return ()
        attached = assigned_ids(self._find_record(model_id), "filterIds")
        return [plugin for plugin in self._known if plugin.is_global or plugin.id in attached]

    def _forget(self, _: Plugin) -> None:
        self._known = None

    async def _loaded(self, plugin: Plugin) -> PluginHandle:
        try:
            return await self._registry.loaded(plugin.family, plugin.id)
        except GatewayError as error:
            raise GatewayError(
                ErrorKind.PLUGIN_FAILED,
                f"cannot answer without filter {plugin.id!r}, which does not load: {error.message}",
            ) from error


class PluginFilter:
    """One filter function in one request."""

    def __init__(self, loaded: PluginHandle, exchange: FilterContext) -> None:
        self._loaded = loaded
        self._exchange = exchange
        self._has_failed = False
        self._hook: RepeatedCall | None = None
        # A policy holds to the end of an answer, whatever takes its place meanwhile.
        loaded.keep_for(self)

    @property
    def _id(self) -> str:
        return self._loaded.plugin.id

    async def inlet(self, request: ChatRequest, model: Model, actor: Actor) -> None:
        """Let the filter change the request; what it raises refuses the request with its own text."""
        form = self._exchange.form()
        self._exchange.scope.filtered.add(self._id)
        try:
            given = await self._loaded.call("inlet", self._exchange.scope, {"body": form})
        except PluginError as failure:
            raise refusal(failure) from failure
        if given is None:
            log.info("an inlet returned nothing: the body stays as it is", extra={"plugin": self._id})
        self._exchange.take(form if given is None else given, self._id)

    async def stream(self, chunk: CompletionChunk) -> CompletionChunk:
        """Let the filter change each event; one that it fails on passes as it was."""
        if self._hook is None:
            self._hook = self._loaded.repeated(STREAM_METHOD, STREAM_PARAMETER, self._exchange.scope)
        before = chunk.data
        try:
            results = await self._hook.run(before, self._arguments)
        except PluginError as failure:
            self._note(failure.message)
            return chunk
        if all(map(is_, before, results)):
            return chunk
        return CompletionChunk.of_data(map(self._passed, before, results))

    async def outlet(self, completion: Completion, actor: Actor) -> None:
        """Let the filter change a finished answer; when it fails, the answer stays as it is."""
        form = self._exchange.finished(completion)
        after = await run_outlet(self._loaded, self._exchange.scope, form)
        self._exchange.take_outlet_result(after, completion)

    def _arguments(self) -> Body:
        return {"__body__": self._exchange.form()}

    def _passed(self, before: bytes, result: Result) -> bytes:
        if isinstance(result, bytes):
            return result
        self._note(result)
        return before

    def _note(self, problem: str) -> None:
        """Log the first problem of an answer: the next chunks have the same."""
        if not self._has_failed:
            log.warning("a stream filter leaves chunks as they are: %s", problem, extra={"plugin": self._id})
        self._has_failed = True


class FileRemovalFilter:
    """The last inlet where one of the filters reads the files itself."""

    def __init__(self, exchange: FilterContext) -> None:
        self._exchange = exchange

    async def inlet(self, request: ChatRequest, model: Model, actor: Actor) -> None:
        """Take the files from the request."""
        self._exchange.drop_files()

    async def stream(self, chunk: CompletionChunk) -> CompletionChunk:
        """Return the chunk."""
        return chunk

    async def outlet(self, completion: Completion, actor: Actor) -> None:
        """Leave the answer as it is."""
        return


async def run_outlet(loaded: PluginHandle, scope: CallScope, form: Body) -> Body:
    """Return what an outlet makes of a body; when it fails, which is logged, the body as it was."""
    before: Body = copy_json(form)
    try:
        return await apply_outlet(loaded, scope, form)
    except GatewayError as error:
        log.warning("an outlet failed: %s", error.full_message, extra={"plugin": loaded.plugin.id})
        return before


async def apply_outlet(loaded: PluginHandle, scope: CallScope, form: Body) -> Body:
    """Return what an outlet makes of a body; a failure refuses with the filter's own text."""
    try:
        given = await loaded.call("outlet", scope, {"body": form})
    except PluginError as failure:
        raise refusal(failure) from failure
    if given is None:
        log.info("an outlet returned nothing: the body stays as it is", extra={"plugin": loaded.plugin.id})
    after: Body = form if given is None else given
    problem = _body_problem(after)
    if problem is not None:
        sentence = f"cannot use the body of filter {loaded.plugin.id!r}: {problem}"
        raise GatewayError(ErrorKind.PLUGIN_FAILED, sentence)
    return after


def refusal(failure: PluginError) -> GatewayError:
    """Return the error by which a plugin refuses a request: its text, and the status when it names one."""
    status = failure.status or 400
    kind = _KINDS.get(status, ErrorKind.PLUGIN_FAILED if status >= 500 else ErrorKind.INVALID_REQUEST)
    sentence = failure.text or failure.message
    return GatewayError(kind, sentence, code="plugin_refused", retry_after=failure.retry_after)


def _ordered(loaded: Sequence[PluginHandle], wanted: Sequence[str]) -> Sequence[PluginHandle]:
    """Return the filters that run, by priority: those with a toggle only where the request has them on."""
    chosen = [item for item in loaded if item.plugin.id in wanted or not item.flag("toggle")]
    return sorted(chosen, key=lambda item: (item.priority(), item.plugin.id))


def _chain(chosen: Sequence[PluginHandle], exchange: FilterContext, runs_outlets: bool) -> FiltersByHook:
    filters = [(item, PluginFilter(item, exchange)) for item in chosen]
    handles_files = any(item.flag("file_handler") for item in chosen)
    readers = {item.plugin.id: made for item, made in filters if item.has("inlet")}
    inlets: list[ChatFilter] = list(readers.values())
    if handles_files:
        inlets.append(FileRemovalFilter(exchange))
    outlets = tuple(made for item, made in filters if item.has("outlet")) if runs_outlets else ()
    exchange.begin(has_outlets=bool(outlets))
    streams = tuple(
        made for item, made in filters if item.has(STREAM_METHOD) and not item.is_idle(STREAM_METHOD)
    )
    exchange.scope.filtered |= {item.plugin.id for item in chosen} - readers.keys()
    return FiltersByHook(tuple(inlets), streams, outlets, handles_files)


def _body_problem(given: Any) -> str | None:
    if not isinstance(given, dict):
        return f"it is no object but a {type(given).__name__}"
    messages = given.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        return "messages is no list of objects"
    return json_problem(given)
