"""Implementation of `open_webui.utils.chat`: chat requests of plugins."""

from collections.abc import Mapping
from typing import Any, Final

from gatewayd.plugins.open_webui.host_bridge import HostBridge
from gatewayd.plugins.open_webui.modules.users import id_of
from gatewayd.plugins.open_webui.placeholders import load_web_module
from gatewayd.plugins.open_webui.streams import EventFrames
from gatewayd.plugins.runtime.call_context import current_call
from gatewayd.plugins.runtime.context import CallScope

CALL_SCOPE_KEY: Final = "gatewayd.call"
"""Key in the ASGI scope of `__request__` for the CallScope of the call."""


def scope_of(request: Any) -> CallScope | None:
    """Return the scope of a request; for a request made by a plugin, the scope of the running call."""
    found = getattr(request, "scope", None)
    call = found.get(CALL_SCOPE_KEY) if isinstance(found, Mapping) else None
    if isinstance(call, CallScope):
        return call
    now = current_call.get()
    return None if now is None else now.scope


class CompletionFunctions:
    """Completion functions; they return a mapping, or a StreamingResponse when `stream` is true."""

    def __init__(self, bridge: HostBridge) -> None:
        self._bridge = bridge

    async def generate_chat_completion(
        self,
        request: Any,
        form_data: Mapping[str, Any],
        user: Any = None,
        bypass_filter: bool = False,
        bypass_system_prompt: bool = False,
        **_: Any,
    ) -> Any:
        """Send a chat request to a model without documents and tools of the gateway.

        The access list of the model is always checked. Raises GatewayError.
        """
        del bypass_filter, bypass_system_prompt
        return await self._ask(request, form_data, user, whole_pipeline=False)

    async def chat_completion(
        self, request: Any, form_data: Mapping[str, Any], user: Any = None, **_: Any
    ) -> Any:
        """Send a chat request as a client does, with filters, documents and tools."""
        return await self._ask(request, form_data, user, whole_pipeline=True)

    async def _ask(
        self, request: Any, form_data: Mapping[str, Any], user: Any, *, whole_pipeline: bool
    ) -> Any:
        scope = scope_of(request)
        if user is None and scope is None:
            raise TypeError("cannot call a model: the user is missing")
        user_id = scope.actor.user_id if user is None and scope is not None else id_of(user)
        run = self._bridge.host.completions.run
        answer = await self._bridge.reach(
            run, user_id, dict(form_data), whole_pipeline=whole_pipeline, scope=scope
        )
        if isinstance(answer, Mapping):
            return dict(answer)
        frames = EventFrames(self._bridge, answer)
        return load_web_module("starlette.responses").StreamingResponse(
            frames, media_type="text/event-stream"
        )


def make_chat(bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.utils.chat`."""
    asked = CompletionFunctions(bridge)
    return {
        "generate_chat_completion": asked.generate_chat_completion,
        "generate_chat_completions": asked.generate_chat_completion,
        "chat_completion": asked.chat_completion,
    }
