"""Chat requests from plugins: `open_webui.utils.chat` and the request functions of `open_webui.main`."""

from collections.abc import Mapping
from typing import Any, Final

from gatewayd.plugins.open_webui.host_bridge import HostBridge
from gatewayd.plugins.open_webui.modules.users import id_of
from gatewayd.plugins.open_webui.streams import EventFrames
from gatewayd.plugins.open_webui.web_library import load_web_module
from gatewayd.plugins.runtime.call_context import current_call
from gatewayd.plugins.runtime.context import CallScope

CALL_SCOPE_KEY: Final = "gatewayd.call"
"""Where the ASGI scope of `__request__` has the CallScope of the plugin's call."""


def scope_of(request: Any) -> CallScope | None:
    """Return the call behind a request; for one that a plugin made, the call that its code serves, if any."""
    found = getattr(request, "scope", None)
    call = found.get(CALL_SCOPE_KEY) if isinstance(found, Mapping) else None
    if isinstance(call, CallScope):
        return call
    now = current_call.get()
    return None if now is None else now.scope


class CompletionFunctions:
    """Asks models for plugins. Answers are mappings, or a StreamingResponse when `stream` is true."""

    def __init__(self, gate: HostBridge) -> None:
        self._gate = gate

    async def generate_chat_completion(
        self,
        request: Any,
        form_data: Mapping[str, Any],
        user: Any = None,
        bypass_filter: bool = False,
        bypass_system_prompt: bool = False,
        **_: Any,
    ) -> Any:
        """Ask a model directly: without filters, documents and tools.

        The user's right to use the model is checked whatever the flags say. Raises GatewayError.
        """
        del bypass_filter, bypass_system_prompt
        return await self._ask(request, form_data, user, whole_pipeline=False)

    async def chat_completion(
        self, request: Any, form_data: Mapping[str, Any], user: Any = None, **_: Any
    ) -> Any:
        """Ask a model as a client does, with filters, documents and tools."""
        return await self._ask(request, form_data, user, whole_pipeline=True)

    async def _ask(
        self, request: Any, form_data: Mapping[str, Any], user: Any, *, whole_pipeline: bool
    ) -> Any:
        scope = scope_of(request)
        if user is None and scope is None:
            raise TypeError("cannot ask a model: the user is missing")
        user_id = scope.actor.user_id if user is None and scope is not None else id_of(user)
        run = self._gate.host.completions.run
        answer = await self._gate.reach(
            run, user_id, dict(form_data), whole_pipeline=whole_pipeline, scope=scope
        )
        if isinstance(answer, Mapping):
            return dict(answer)
        frames = EventFrames(self._gate, answer)
        return load_web_module("starlette.responses").StreamingResponse(
            frames, media_type="text/event-stream"
        )


def make_chat(gate: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.utils.chat`."""
    asked = CompletionFunctions(gate)
    return {
        "generate_chat_completion": asked.generate_chat_completion,
        "generate_chat_completions": asked.generate_chat_completion,
        "chat_completion": asked.chat_completion,
    }
