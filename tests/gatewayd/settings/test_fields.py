import pytest
from pydantic import BaseModel, ValidationError

from gatewayd.settings.fields import ACCOUNTS, SERVER, reload, restart, setting


def test_a_declaration_carries_its_metadata() -> None:
    class Example(BaseModel):
        size: int = setting(reload(ACCOUNTS), 5, "How big.", "extent", "length", ge=1)
        name: str = setting(restart(SERVER), "x", "How called.")

    fields = Example.model_fields
    assert fields["size"].description == "How big."
    assert fields["size"].json_schema_extra == {
        "category": ACCOUNTS,
        "reloadable": True,
        "aliases": ["extent", "length"],
    }
    assert fields["name"].json_schema_extra == {"category": SERVER, "reloadable": False, "aliases": []}
    with pytest.raises(ValidationError):
        Example(size=0)


def test_defaults_are_checked_too() -> None:
    class Example(BaseModel):
        size: int = setting(restart(SERVER), 0, "How big.", ge=1)

    with pytest.raises(ValidationError):
        Example()
