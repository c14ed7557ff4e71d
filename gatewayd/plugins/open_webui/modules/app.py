"""`request.app` for plugins, which is `open_webui.main.app` too."""

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
from gatewayd.plugins.open_webui.placeholders import missing_name_sentence
from gatewayd.plugins.open_webui.web_library import load_web_module

ROUTES: Final = {
    "get_file_content_by_id": "/api/v1/files/{id}/content",
    "get_file_by_id": "/api/v1/files/{id}",
}
"""The routes that plugins ask the path of, by the peer's names."""


class AppState:
    """`app.state`: what plugins put there, and what the gateway answers for.

    `config` has the settings, `MODELS` the models by id, `EMBEDDING_FUNCTION` makes vectors.
    """

    def __init__(self, gate: HostBridge) -> None:
        self._gate = gate
        self.config = ConfigView(gate)
        self.EMBEDDING_FUNCTION = make_embedding(gate)

    @property
    def _state(self) -> "StateView":
        """What starlette keeps attributes in, and plugins look into."""
        return StateView(self)

    @property
    def MODELS(self) -> AnswerDict[str, Any]:  # noqa: N802 - the peer's name
        """The models by id, as listings show them, at this moment."""
        models = self._gate.wait(_models, self._gate)
        return AnswerDict((model_id, dict(model)) for model_id, model in models.items())

    def __getattr__(self, name: str) -> Any:
        """Raise AttributeError that says what is missing."""
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
        return iter([*(name for name in vars(self._of) if name != "_gate"), "MODELS"])

    def __len__(self) -> int:
        return len(list(iter(self)))


class PluginApp:
    """The application object of a plugin's request."""

    def __init__(self, gate: HostBridge) -> None:
        self.state = AppState(gate)
        self.version = VERSION

    def url_path_for(self, name: str, /, **parameters: Any) -> Any:
        """Return the path of a route, as a `URLPath` of starlette; NoMatchFound when there is none."""
        try:
            path = ROUTES[name].format(
                **{key: quote(str(value), safe="") for key, value in parameters.items()}
            )
        except KeyError as error:
            raise load_web_module("starlette.routing").NoMatchFound(name, parameters) from error
        return load_web_module("starlette.datastructures").URLPath(path, "http")


def make_embedding(gate: HostBridge) -> Callable[..., Awaitable[Any]]:
    """Return the coroutine function that gives the vector of a text, or those of a list of texts."""

    async def embed(query: str | Sequence[str], *_: Any, **__: Any) -> Any:
        texts = [query] if isinstance(query, str) else list(query)
        vectors = await gate.reach(_embed, gate, texts)
        return list(vectors[0]) if isinstance(query, str) else [list(vector) for vector in vectors]

    return embed


async def _embed(gate: HostBridge, texts: Sequence[str]) -> Sequence[Sequence[float]]:
    return await gate.host.completions.embed(texts)


async def _models(gate: HostBridge) -> Mapping[str, Mapping[str, Any]]:
    return await gate.host.models.all()


def make_main(gate: HostBridge, app: PluginApp) -> dict[str, Any]:
    """Return the names of `open_webui.main`; without starlette there is no `Request` among them."""
    made = {"app": app, **make_chat(gate), **make_model_lists(gate)}
    with suppress(GatewayError):
        made["Request"] = load_web_module("starlette.requests").Request
    return made
