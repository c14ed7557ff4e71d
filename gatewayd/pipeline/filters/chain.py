"""Filter chains: selects the filter functions of a request and runs their inlet, stream and outlet hooks."""

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
from gatewayd.plugins.runtime.instance import STREAM_METHOD, STREAM_PARAMETER
from gatewayd.plugins.runtime.interfaces import PluginHandle
from gatewayd.plugins.runtime.invoke import PluginError
from gatewayd.plugins.runtime.repeated_calls import RepeatedCall, Result

log = logging.getLogger(__name__)

FindRecord = Callable[[str], ModelRecord | None]
"""Returns the record of a model, if there is one."""

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
    """The filters of one request, by hook (gatewayd-plugins(7), KINDS)."""

    inlets: tuple[ChatFilter, ...] = ()
    streams: tuple[ChatFilter, ...] = ()
    outlets: tuple[ChatFilter, ...] = ()
    handles_files: bool = False


EMPTY_CHAIN: Final = FiltersByHook()


class PluginFilters:
    """The `pipeline.interfaces.ChatFilters` of plugins: selects the filter functions of a request.

    `runs_outlets` returns whether outlets also run on the answers of direct calls.
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
        registry.subscribe(self._invalidate)

    async def choose(self, request: ChatRequest, model: Model, actor: Actor) -> FilterChain:
        """Return the filters of the request by priority, without those that it already passed.

        A filter that cannot be loaded refuses the request (plugin_failed); a policy is never skipped
        silently.
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

    def may_apply(self, model_id: str) -> bool:
        """Return False if no filter can apply to the requests to a model."""
        return bool(self._active(model_id))

    async def are_on(self, model_id: str) -> bool:
        """Return True if filters apply to requests that enable no toggle filter.

        Raises plugin_failed for a filter that cannot be loaded.
        """
        found = self._active(model_id)
        loaded = [await self._loaded(plugin) for plugin in found]
        return any(item.has("inlet") or item.has("stream") for item in _ordered(loaded, ()))

    async def list_with_outlet(
        self, model_id: str, enabled: Sequence[str], *, strict: bool
    ) -> Sequence[PluginHandle]:
        """Return the filters of a model that have an outlet, by priority.

        With `strict` a filter that cannot be loaded raises plugin_failed; otherwise it is logged and skipped.
        """
        loaded: list[PluginHandle] = []
        for plugin in self._active(model_id):
            try:
                loaded.append(await self._loaded(plugin))
            except GatewayError as error:
                if strict:
                    raise
                log.warning("outlet skipped: %s", error.full_message, extra={"plugin": plugin.id})
        return [item for item in _ordered(loaded, enabled) if item.has("outlet")]

    def _active(self, model_id: str) -> Sequence[Plugin]:
        if self._known is None:
            # The operator may have disabled all plugins.
            is_running = self._registry.is_running
            plugins = self._registry.list(PluginFamily.FUNCTION, PluginKind.FILTER) if is_running else ()
            self._known = [plugin for plugin in plugins if plugin.is_active]
        if not self._known:
            return ()
        attached = assigned_ids(self._find_record(model_id), "filterIds")
        return [plugin for plugin in self._known if plugin.is_global or plugin.id in attached]

    def _invalidate(self, _: Plugin) -> None:
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
    """One filter function applied to one request."""

    def __init__(self, loaded: PluginHandle, context: FilterContext) -> None:
        self._loaded = loaded
        self._context = context
        self._has_failed = False
        self._hook: RepeatedCall | None = None
        # A policy must apply to the whole answer, even if the plugin is replaced meanwhile.
        loaded.keep_for(self)

    @property
    def _id(self) -> str:
        return self._loaded.plugin.id

    async def inlet(self, request: ChatRequest, model: Model, actor: Actor) -> None:
        """Let the filter change the request; an exception refuses the request with the filter's own text."""
        form = self._context.form()
        self._context.scope.filtered.add(self._id)
        try:
            given = await self._loaded.call("inlet", self._context.scope, {"body": form})
        except PluginError as failure:
            raise refusal(failure) from failure
        if given is None:
            log.info("inlet returned None; the body is unchanged", extra={"plugin": self._id})
        self._context.take(form if given is None else given, self._id)

    async def stream(self, chunk: CompletionChunk) -> CompletionChunk:
        """Let the filter change each event; an event on which it fails passes unchanged."""
        if self._hook is None:
            self._hook = self._loaded.repeated(STREAM_METHOD, STREAM_PARAMETER, self._context.scope)
        before = chunk.data
        try:
            results = await self._hook.run(before, self._arguments)
        except PluginError as failure:
            self._log_once(failure.message)
            return chunk
        if all(map(is_, before, results)):
            return chunk
        return CompletionChunk.of_data(map(self._result_or_original, before, results))

    async def outlet(self, completion: Completion, actor: Actor) -> None:
        """Let the filter change a finished answer; if it fails, the answer stays unchanged."""
        form = self._context.finished(completion)
        after = await run_outlet(self._loaded, self._context.scope, form)
        self._context.take_outlet_result(after, completion)

    def _arguments(self) -> Body:
        return {"__body__": self._context.form()}

    def _result_or_original(self, before: bytes, result: Result) -> bytes:
        if isinstance(result, bytes):
            return result
        self._log_once(result)
        return before

    def _log_once(self, problem: str) -> None:
        """Log only the first problem of an answer, because every later chunk repeats it."""
        if not self._has_failed:
            log.warning(
                "stream filter failed; chunks pass unchanged: %s", problem, extra={"plugin": self._id}
            )
        self._has_failed = True


class FileRemovalFilter:
    """The last inlet of a chain in which a filter handles the files itself."""

    def __init__(self, context: FilterContext) -> None:
        self._context = context

    async def inlet(self, request: ChatRequest, model: Model, actor: Actor) -> None:
        """Remove the files from the request."""
        self._context.drop_files()

    async def stream(self, chunk: CompletionChunk) -> CompletionChunk:
        """Return the chunk unchanged."""
        return chunk

    async def outlet(self, completion: Completion, actor: Actor) -> None:
        """Leave the answer unchanged."""
        return


async def run_outlet(loaded: PluginHandle, scope: CallScope, form: Body) -> Body:
    """Return the body that an outlet returns; if it fails, log the error and return the original body."""
    before: Body = copy_json(form)
    try:
        return await apply_outlet(loaded, scope, form)
    except GatewayError as error:
        log.warning("outlet failed: %s", error.full_message, extra={"plugin": loaded.plugin.id})
        return before


async def apply_outlet(loaded: PluginHandle, scope: CallScope, form: Body) -> Body:
    """Return the body that an outlet returns; an exception of the filter raises its own text."""
    try:
        given = await loaded.call("outlet", scope, {"body": form})
    except PluginError as failure:
        raise refusal(failure) from failure
    if given is None:
        log.info("outlet returned None; the body is unchanged", extra={"plugin": loaded.plugin.id})
    after: Body = form if given is None else given
    problem = _body_problem(after)
    if problem is not None:
        sentence = f"cannot use the body of filter {loaded.plugin.id!r}: {problem}"
        raise GatewayError(ErrorKind.PLUGIN_FAILED, sentence)
    return after


def refusal(failure: PluginError) -> GatewayError:
    """Return the error by which a plugin refuses a request: its text, and its status if it gives one."""
    status = failure.status or 400
    kind = _KINDS.get(status, ErrorKind.PLUGIN_FAILED if status >= 500 else ErrorKind.INVALID_REQUEST)
    sentence = failure.text or failure.message
    return GatewayError(kind, sentence, code="plugin_refused", retry_after=failure.retry_after)


def _ordered(loaded: Sequence[PluginHandle], enabled: Sequence[str]) -> Sequence[PluginHandle]:
    """Return the filters to run, by priority; a toggle filter runs only if the request enables it."""
    chosen = [item for item in loaded if item.plugin.id in enabled or not item.flag("toggle")]
    return sorted(chosen, key=lambda item: (item.priority(), item.plugin.id))


def _chain(chosen: Sequence[PluginHandle], context: FilterContext, runs_outlets: bool) -> FiltersByHook:
    filters = [(item, PluginFilter(item, context)) for item in chosen]
    handles_files = any(item.flag("file_handler") for item in chosen)
    readers = {item.plugin.id: made for item, made in filters if item.has("inlet")}
    inlets: list[ChatFilter] = list(readers.values())
    if handles_files:
        inlets.append(FileRemovalFilter(context))
    outlets = tuple(made for item, made in filters if item.has("outlet")) if runs_outlets else ()
    context.begin(has_outlets=bool(outlets))
    streams = tuple(
        made for item, made in filters if item.has(STREAM_METHOD) and not item.is_idle(STREAM_METHOD)
    )
    context.scope.filtered |= {item.plugin.id for item in chosen} - readers.keys()
    return FiltersByHook(tuple(inlets), streams, outlets, handles_files)


def _body_problem(given: Any) -> str | None:
    if not isinstance(given, dict):
        return f"expected an object, got {type(given).__name__}"
    messages = given.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        return "messages must be a list of objects"
    return json_problem(given)
