"""The table of families follows the conventions of Prometheus."""

import re

import pytest

from gatewayd.observe.metrics.families import FAMILIES, MetricFamily, MetricType


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_names_and_sentences(family: MetricFamily) -> None:
    assert re.fullmatch(r"gatewayd_[a-z0-9_]+", family.name)
    assert family.name.endswith("_total") == (family.type is MetricType.COUNTER)
    assert not re.search(r"_(ms|milliseconds|kb|mb|percent)(_|$)", family.name)
    assert family.help[0].isupper()
    assert not family.help.endswith(".")
    assert not set(family.labels) & {"user", "user_id", "key", "key_id", "email", "path", "le"}


def test_names_stand_once() -> None:
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
