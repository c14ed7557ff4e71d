"""gatewayd-cluster(7), INVALIDATION, has the figures of the code."""

import importlib
import re
from pathlib import Path

import pytest

from gatewayd.cluster.freshness import TRUST_SECONDS
from gatewayd.cluster.reader import ANSWER_SECONDS, HEARTBEAT_SECONDS
from gatewayd.storage.cluster.change_log import KEPT_ROWS, KEPT_SECONDS, PRUNE

MAX_SUBJECTS = importlib.import_module("gatewayd.storage.migrations.0021_cluster_changes").MAX_SUBJECTS
PAGE = (Path(__file__).parent.parent / "man" / "gatewayd-cluster.7").read_text()
SECTION = " ".join(PAGE.partition(".Sh INVALIDATION\n")[2].partition("\n.Sh ")[0].split())


@pytest.mark.parametrize(
    "words",
    [
        f"asks every {HEARTBEAT_SECONDS:g} seconds",
        f"is used for {TRUST_SECONDS:g} seconds",
        f"answer within {ANSWER_SECONDS:g} seconds",
        f"more than {MAX_SUBJECTS} changes of one kind",
        f"removed after {KEPT_SECONDS} seconds, except the last {KEPT_ROWS:,}",
    ],
)
def test_the_page_has_the_figures(words: str) -> None:
    assert words in SECTION


def test_the_figures_are_those_of_the_statement() -> None:
    assert re.findall(r"\d{4,}", PRUNE) == [str(KEPT_ROWS), str(KEPT_SECONDS)]
