"""Tests for gatewayd.http.public.knowledge.bodies."""

import pytest
from pydantic import ValidationError

from gatewayd.catalog.records import Grant
from gatewayd.http.public.knowledge.bodies import AdditionBody, BatchBody, CollectionBody, ShareBody


def test_grants() -> None:
    everybody = {"principal_type": "user", "principal_id": "*", "permission": "read"}
    assert CollectionBody(name="a").grants() is None
    assert CollectionBody(name="a", access_grants=[everybody]).grants() == (Grant("user", "*", "read"),)
    # In the former form null is a value, and absence is none.
    assert CollectionBody.model_validate({"name": "a", "access_control": None}).grants() == (
        Grant("user", "*", "read"),
    )
    assert CollectionBody.model_validate({"name": "a", "access_control": {}}).grants() == ()


def test_an_access_list_is_needed_to_share() -> None:
    with pytest.raises(ValidationError, match="access_grants"):
        ShareBody()
    assert ShareBody(access_grants=[]).grants() == ()


@pytest.mark.parametrize("wait", [-1, 301, "soon"])
def test_bad_waits(wait: object) -> None:
    with pytest.raises(ValidationError):
        AdditionBody.model_validate({"file_id": "f", "wait": wait})


def test_a_batch_is_a_list() -> None:
    assert [item.file_id for item in BatchBody.model_validate([{"file_id": "f"}]).root] == ["f"]
