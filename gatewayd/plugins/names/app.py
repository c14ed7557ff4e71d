"""`request.app` for plugins, which is `open_webui.main.app` too."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from gatewayd.plugins.names.answers import AnswerDict
from gatewayd.plugins.names.completions import make_chat
from gatewayd.plugins.names.gate import Gate
from gatewayd.plugins.names.placeholders import sentence
from gatewayd.plugins.names.settings import VERSION, ConfigView
from gatewayd.plugins.names.web import load

ROUTES: Final = {
    "get_file_content_by_id": "/api/v1/files/{id}/content",
    "get_file_by_id": "/api/v1/files/{id}",
}
"""The routes that plugins ask the path of, by the peer's names."""


class AppState:
    """`app.state`: what plugins put there, and what the gateway answers for.

    `config` has the settings, `MODELS` the models by id, `EMBEDDING_FUNCTION` makes vectors.
    """

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self.config = ConfigView(gate)
        self.EMBEDDING_FUNCTION = make_embedding(gate)

    @property
    def MODELS(self) -> AnswerDict[str, Any]:  # noqa: N802 - the peer's name
        """The models by id, as listings show them, at this moment."""
        models = self._gate.wait(_models, self._gate)
        return AnswerDict((model_id, dict(model)) for model_id, model in models.items())

    def __getattr__(self, name: str) -> Any:
        """Raise AttributeError that says what is missing."""
        raise AttributeError(sentence(f"app.state.{name}"))


class App:
    """The application object of a plugin's request."""

    def __init__(self, gate: Gate) -> None:
        self.state = AppState(gate)
        self.version = VERSION

    def url_path_for(self, name: str, /, **parameters: Any) -> Any:
        """Return the path of a route, as a `URLPath` of starlette; NoMatchFound when there is none."""
        try:
            path = ROUTES[name].format(
                **{key: quote(str(value), safe="") for key, value in parameters.items()}
            )
        except KeyError as error:
            raise load("starlette.routing").NoMatchFound(name, parameters) from error
        return load("starlette.datastructures").URLPath(path, "http")


def make_embedding(gate: Gate) -> Callable[..., Awaitable[Any]]:
    """Return the coroutine function that gives the vector of a text, or those of a list of texts."""

    async def embed(query: str | Sequence[str], *_: Any, **__: Any) -> Any:
        texts = [query] if isinstance(query, str) else list(query)
        vectors = await gate.reach(_embed, gate, texts)
        return list(vectors[0]) if isinstance(query, str) else [list(vector) for vector in vectors]

    return embed


async def _embed(gate: Gate, texts: Sequence[str]) -> Sequence[Sequence[float]]:
    return await gate.host.completions.embed(texts)


async def _models(gate: Gate) -> Mapping[str, Mapping[str, Any]]:
    return await gate.host.models.all()


def make_main(gate: Gate, app: App) -> dict[str, Any]:
    """Return the names of `open_webui.main`."""
    return {"app": app, **make_chat(gate)}
