"""The settings of the cluster profile."""

import pytest
from pydantic import ValidationError

from gatewayd.settings.cluster import ClusterFields


def test_the_cluster_profile_is_off_unless_it_is_asked_for() -> None:
    assert ClusterFields().cluster is False


@pytest.mark.parametrize(("text", "value"), [("true", True), ("false", False)])
def test_the_switch_takes_the_words_of_the_file(text: str, value: bool) -> None:
    assert ClusterFields(cluster=text).cluster is value


def test_other_words_are_refused() -> None:
    with pytest.raises(ValidationError, match="cluster"):
        ClusterFields(cluster="perhaps")
