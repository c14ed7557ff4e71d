import itertools
from dataclasses import replace
from typing import Any

import pytest

from gatewayd.catalog.model_list import MAX_MODELS
from gatewayd.catalog.records import Model
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.sources.config import ModelListUse, ProviderConfig, SourceKind
from gatewayd.upstream.sources.model_list import find_listed, select_models

CONFIG = ProviderConfig(
    "acme", SourceKind.OPENAI, "http://acme.test/v1/", prefix="acme.", models=("a", "b", "long")
)


async def test_allow_list_prefix_and_odd_objects():
    found = [
        {"id": "a", "created": 5.0, "name": "A"},
        {"id": "a", "created": "x"},
        {"id": "b", "name": ""},
        {"id": "c"},
        {"id": 3},
        {"id": ["a"]},
        {},
    ]
    models = await select_models(CONFIG, found, "openai", lambda item: {"openai": item})
    assert models == [
        Model("acme.a", "a", "openai", "acme", "a", 0, detail={"openai": found[1]}),
        Model("acme.b", "b", "openai", "acme", "b", 0, detail={"openai": found[2]}),
    ]


async def test_without_allow_list_only_usable_ids():
    config = ProviderConfig(
        "acme", SourceKind.OPENAI, "http://acme.test", owned_by="local", connection_type="local"
    )
    found = [{"id": name} for name in ("", "a\nb", "x" * 257, "org/x:7b")]
    models = await select_models(config, found, "openai", lambda item: {})
    assert [(model.id, model.owned_by, model.connection_type) for model in models] == [
        ("org/x:7b", "local", "local")
    ]


@pytest.mark.parametrize("created", [-1, 1e300, 2**64 - 1, True, "5", None, [5]])
async def test_a_time_that_cannot_be_shown_is_left_out(created: object) -> None:
    (model,) = await select_models(CONFIG, [{"id": "a", "created": created}], "openai", lambda item: {})
    assert model.created in {0, 1}


async def test_no_more_are_built_than_tell_that_there_are_too_many() -> None:
    config = ProviderConfig("acme", SourceKind.OPENAI, "http://acme.test")
    endless = ({"id": f"m{number}"} for number in itertools.count())
    assert len(await select_models(config, endless, "openai", lambda item: {})) == MAX_MODELS + 1


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (ModelListUse.FILTER, ["a"]),
        (ModelListUse.ADD, ["a", "b", "long", "c"]),
        (ModelListUse.REPLACE, ["a", "b", "long"]),
    ],
)
async def test_ids_of_the_settings_filter_extend_or_replace_the_list(
    use: ModelListUse, expected: list[str]
) -> None:
    fetched = []

    async def fetch() -> list[dict[str, Any]]:
        fetched.append(1)
        return [{"id": "a", "name": "A"}, {"id": "c"}]

    config = replace(CONFIG, model_list=use)
    found = await find_listed(config, fetch)
    models = await select_models(config, found, "openai", lambda item: {})
    assert [model.upstream_id for model in models] == expected
    assert bool(fetched) is (use is not ModelListUse.REPLACE)
    # What the provider says of a model is not lost.
    assert models[0].name == ("a" if use is ModelListUse.REPLACE else "A")


async def test_a_list_that_fails_is_no_list_of_the_settings() -> None:
    async def fail() -> list[dict[str, Any]]:
        raise GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot list")

    for use in (ModelListUse.FILTER, ModelListUse.ADD):
        with pytest.raises(GatewayError, match="cannot list"):
            await find_listed(replace(CONFIG, model_list=use), fail)
