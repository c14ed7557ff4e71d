"""Implementation of `open_webui.main`, whose `app` is also `request.app` of plugins."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote

from gatewayd.errors import GatewayError
from gatewayd.plugins.open_webui.awaitable_records import AnswerDict
from gatewayd.plugins.open_webui.host_bridge import HostBridge
from gatewayd.plugins.open_webui.modules.completions import make_chat
from gatewayd.plugins.open_webui.modules.models import make_model_lists
from gatewayd.plugins.open_webui.modules.settings import VERSION, ConfigView
from gatewayd.plugins.open_webui.placeholders import load_web_module, missing_name_sentence

ROUTES: Final = {
    "get_file_content_by_id": "/api/v1/files/{id}/content",
    "get_file_by_id": "/api/v1/files/{id}",
}
"""Paths of the routes of `url_path_for`, by their names in Open WebUI."""


class AppState:
    """`app.state`: attributes set by plugins, and those of the gateway.

    `config` has the settings, `MODELS` the models by id, `EMBEDDING_FUNCTION` embeds texts.
    """

    def __init__(self, bridge: HostBridge) -> None:
        self._bridge = bridge
        self.config = ConfigView(bridge)
        self.EMBEDDING_FUNCTION = make_embedding(bridge)

    @property
    def _state(self) -> "StateView":
        """The attributes as a mapping, under the name of starlette that plugins use."""
        return StateView(self)

    @property
    def MODELS(self) -> AnswerDict[str, Any]:  # noqa: N802 - name of Open WebUI
        """The current models by id, in the format of the model list."""
        models = self._bridge.wait(_models, self._bridge)
        return AnswerDict((model_id, dict(model)) for model_id, model in models.items())

    def __getattr__(self, name: str) -> Any:
        """Raise AttributeError with the full name of the missing attribute."""
        raise AttributeError(missing_name_sentence(f"app.state.{name}"))


class StateView(MutableMapping[str, Any]):
    """The attributes of `app.state` as a mapping."""

    def __init__(self, state: AppState) -> None:
        self._of = state

    def __getitem__(self, name: str) -> Any:
        if name not in set(self):
            raise KeyError(name)
        return getattr(self._of, name)

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self._of, name, value)

    def __delitem__(self, name: str) -> None:
        if name not in set(self):
            raise KeyError(name)
        delattr(self._of, name)

    def __iter__(self) -> Iterator[str]:
        return iter([*(name for name in vars(self._of) if name != "_bridge"), "MODELS"])

    def __len__(self) -> int:
        return len(list(iter(self)))


class PluginApp:
    """The application object of a plugin's request."""

    def __init__(self, bridge: HostBridge) -> None:
        self.state = AppState(bridge)
        self.version = VERSION

    def url_path_for(self, name: str, /, **parameters: Any) -> Any:
        """Return the path of a route as a starlette `URLPath`; NoMatchFound for an unknown route."""
        try:
            path = ROUTES[name].format(
                **{key: quote(str(value), safe="") for key, value in parameters.items()}
            )
        except KeyError as error:
            raise load_web_module("starlette.routing").NoMatchFound(name, parameters) from error
        return load_web_module("starlette.datastructures").URLPath(path, "http")


def make_embedding(bridge: HostBridge) -> Callable[..., Awaitable[Any]]:
    """Return the coroutine function that embeds a text, or a list of texts."""

    async def embed(query: str | Sequence[str], *_: Any, **__: Any) -> Any:
        texts = [query] if isinstance(query, str) else list(query)
        vectors = await bridge.reach(_embed, bridge, texts)
        return list(vectors[0]) if isinstance(query, str) else [list(vector) for vector in vectors]

    return embed


async def _embed(bridge: HostBridge, texts: Sequence[str]) -> Sequence[Sequence[float]]:
    return await bridge.host.completions.embed(texts)


async def _models(bridge: HostBridge) -> Mapping[str, Mapping[str, Any]]:
    return await bridge.host.models.all()


def make_main(bridge: HostBridge, app: PluginApp) -> dict[str, Any]:
    """Return the names of `open_webui.main`; without starlette there is no `Request` among them."""
    made = {"app": app, **make_chat(bridge), **make_model_lists(bridge)}
    with suppress(GatewayError):
        made["Request"] = load_web_module("starlette.requests").Request
    return made
