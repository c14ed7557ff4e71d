import pytest

from gatewayd.catalog.records import Model
from gatewayd.upstream.config import ProviderConfig, SourceKind
from gatewayd.upstream.listing import listed

CONFIG = ProviderConfig(
    "acme", SourceKind.OPENAI, "http://acme.test/v1/", prefix="acme.", models=("a", "b", "long")
)


def test_allow_list_prefix_and_odd_objects():
    found = [
        {"id": "a", "created": 5.0, "name": "A"},
        {"id": "a", "created": "x"},
        {"id": "b", "name": ""},
        {"id": "c"},
        {"id": 3},
        {"id": ["a"]},
        {},
    ]
    models = listed(CONFIG, found, "openai", lambda item: {"openai": item})
    assert models == [
        Model("acme.a", "a", "openai", "acme", "a", 0, detail={"openai": found[1]}),
        Model("acme.b", "b", "openai", "acme", "b", 0, detail={"openai": found[2]}),
    ]


def test_without_allow_list_only_usable_ids():
    config = ProviderConfig(
        "acme", SourceKind.OPENAI, "http://acme.test", owned_by="local", connection_type="local"
    )
    found = [{"id": name} for name in ("", "a\nb", "x" * 257, "org/x:7b")]
    models = listed(config, found, "openai", lambda item: {})
    assert [(model.id, model.owned_by, model.connection_type) for model in models] == [
        ("org/x:7b", "local", "local")
    ]


@pytest.mark.parametrize("created", [-1, 1e300, 2**64 - 1, True, "5", None, [5]])
def test_a_time_that_cannot_be_shown_is_left_out(created: object) -> None:
    (model,) = listed(CONFIG, [{"id": "a", "created": created}], "openai", lambda item: {})
    assert model.created in {0, 1}
