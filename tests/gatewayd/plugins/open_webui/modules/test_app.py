import pytest
from starlette.routing import NoMatchFound

from gatewayd.plugins.open_webui.finder import InstalledModules
from gatewayd.plugins.runtime.context import RequestFacts
from gatewayd.plugins.runtime.requests import make_request
from tests.fakes.plugins.plugin_threads import at_home, in_thread


async def test_addresses_of_files(installed: InstalledModules) -> None:
    app = installed.app
    assert app.url_path_for("get_file_content_by_id", id="f1") == "/api/v1/files/f1/content"
    assert f"{app.url_path_for('get_file_by_id', id='a/b')}" == "/api/v1/files/a%2Fb"
    request = make_request(RequestFacts(base_url="https://chat.example.org"), app)
    url = request.url_for("get_file_content_by_id", id="f1")
    assert str(url) == "https://chat.example.org/api/v1/files/f1/content"
    for name, parameters in (("no_such", {}), ("get_file_content_by_id", {})):
        with pytest.raises(NoMatchFound):
            app.url_path_for(name, **parameters)


async def test_state(installed: InstalledModules) -> None:
    state = installed.app.state
    assert await in_thread(lambda: state.config.RAG_TOP_K) == 4
    models = await in_thread(lambda: state.MODELS)
    assert models["small"]["name"] == "Small"
    assert not hasattr(state, "own")
    state.own = {"kept": True}
    assert installed.app.state.own == {"kept": True}
    with pytest.raises(AttributeError, match=r"app\.state\.redis is not provided by this gateway"):
        _ = state.redis


async def test_the_mapping_behind_the_state(installed: InstalledModules) -> None:
    state = installed.app.state
    state.own = 1
    assert state._state["own"] == 1
    assert await in_thread(lambda: state._state["MODELS"]["small"]["name"]) == "Small"
    assert set(state._state) == {"config", "EMBEDDING_FUNCTION", "MODELS", "own"}
    assert len(state._state) == 4
    state._state["own"] = 2
    assert state.own == 2
    del state._state["own"]
    assert state._state.get("own") is None
    with pytest.raises(KeyError):
        del state._state["own"]


async def test_vectors(installed: InstalledModules) -> None:
    async def plugin() -> tuple[list[float], list[list[float]]]:
        embed = installed.app.state.EMBEDDING_FUNCTION
        return await embed("four", prefix="x", user=None), await embed(["one", "three"])

    assert await at_home(plugin) == ([4.0, 1.0], [[3.0, 1.0], [5.0, 1.0]])
