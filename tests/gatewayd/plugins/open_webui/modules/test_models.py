from typing import Any

import pytest
from starlette.requests import Request

from gatewayd.plugins.open_webui.finder import InstalledModules
from tests.fakes.plugins.plugin_threads import at_home, in_thread, load_at_home


@pytest.fixture
async def module(installed: InstalledModules) -> Any:
    return (
        await load_at_home(
            "from open_webui.models.models import Models\n"
            "from open_webui.routers.models import get_models, get_base_models, get_model_by_id\n"
            "from open_webui import main\n"
        )
    )[0]


async def test_a_record_has_parameters_and_meta_as_attributes(module: Any) -> None:
    model = await in_thread(module.Models.get_model_by_id, "tutor")
    assert (model.name, model.base_model_id, model.params.system) == ("Tutor", "small", "Teach.")
    assert model.params.model_dump() == {"system": "Teach."}
    small = await in_thread(module.Models.get_model_by_id, "small")
    assert small.meta.description == "fast"
    assert small.is_active
    assert await small is small
    assert await in_thread(module.Models.get_model_by_id, "none") is None

    async def plugin() -> str:
        return str((await module.Models.get_model_by_id("tutor")).base_model_id)

    assert await at_home(plugin) == "small"


async def test_lists(module: Any) -> None:
    models = module.Models
    assert [m.id for m in await in_thread(models.get_all_models)] == ["small", "tutor"]
    assert [m.id for m in await in_thread(models.get_models)] == ["tutor"]
    assert [m.id for m in await in_thread(models.get_base_models)] == ["small"]
    assert [m.id for m in await in_thread(models.get_models_by_user_id, "bob")] == ["small"]
    assert [m.id for m in await in_thread(models.get_models_by_ids, ["x", "tutor"])] == ["tutor"]


async def test_routes(module: Any) -> None:
    async def plugin() -> tuple[Any, Any, Any]:
        named = await module.get_models(None, user={"id": "bob"})
        last = await module.get_models("id", "text", {"id": "ada"})
        return named, last, await module.get_model_by_id("tutor")

    named, last, one = await at_home(plugin)
    assert ([m.id for m in named["items"]], named["total"]) == (["small"], 1)
    assert [m.id for m in last["items"]] == ["small", "tutor"]
    assert one.name == "Tutor"


async def test_lists_as_clients_get_them(module: Any) -> None:
    async def plugin() -> tuple[Any, ...]:
        with pytest.raises(TypeError, match="the user is missing"):
            await module.main.get_models()
        return (
            await module.get_base_models({"id": "ada"}),
            await module.main.get_models(None, user={"id": "ada"}),
            await module.main.get_base_models(None, {"id": "ada"}),
        )

    records, models, base = await at_home(plugin)
    assert [record.id for record in records] == ["small"]
    assert [model["id"] for model in models["data"]] == ["small", "tutor"]
    assert [model["id"] for model in base["data"]] == ["small"]


async def test_the_request_class_of_main_is_that_of_starlette(module: Any) -> None:
    assert module.main.Request is Request
