"""A daemon that is killed at any moment of an ingest finishes what it acknowledged, and nothing twice."""

import os
import sys
from pathlib import Path

import pytest

from tests.fakes.daemons.child_processes import adopting
from tests.fakes.daemons.killed_ingests import Lives
from tests.fakes.documents.changing_tree import Tree
from tests.fakes.storage.postgres import Postgres

SEED = 20_260_301
PLAIN, EARLY = "gatewayd", "tests.fakes.daemons.early_graphs"


def moment(lives: Lives) -> float:
    """Return how many seconds a life lasts: most end while files come in, some much later."""
    longest = lives.random.choice((1.5, 4.0, 12.0))
    return lives.random.uniform(0.02, longest)


def tell(lives: Lives, seed: int) -> None:
    """Print the figures; pytest shows them with -s, or when the test fails."""
    sys.stdout.write(f"seed {seed}: {lives.figures}\n")
    sys.stdout.flush()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("client", ["http", "gatewayctl"])
def test_few_kills(tmp_path: Path, client: str) -> None:
    lives = Lives(tmp_path / "s", SEED, Tree(SEED, 24, bad=2, paragraphs=3))
    with adopting() as orphans:
        lives.begin(orphans, with_ctl=client == "gatewayctl")
        for module in (PLAIN, EARLY):
            lives.live(lives.random.uniform(0.5, 2.5), module)
        lives.die_young(lives.random.uniform(0.0, 1.0))
        lives.live(None)
    tell(lives, SEED)
    assert lives.figures.kills == 3


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("client", "kills"), [("http", 60), ("gatewayctl", 40)])
def test_hundred_kills(tmp_path: Path, client: str, kills: int) -> None:
    seed = int(os.environ.get("INGEST_KILLING_SEED", SEED))
    lives = Lives(tmp_path / "s", seed, Tree(seed, 200, bad=4))
    with adopting() as orphans:
        lives.begin(orphans, with_ctl=client == "gatewayctl")
        while lives.figures.kills < kills:
            go_on(lives)
            tell(lives, seed)
        lives.live(None)
    tell(lives, seed)
    assert lives.figures.passes >= kills // 10
    wanted = {"waiting", "extracting", "embedding", "replacing", "checkpoints"}
    assert wanted <= lives.figures.found.keys()


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_twenty_kills_on_postgresql(tmp_path: Path, postgres: Postgres) -> None:
    lives = Lives(tmp_path / "s", SEED, Tree(SEED, 100, bad=2), postgres.migrated_database())
    with adopting() as orphans:
        lives.begin(orphans)
        while lives.figures.kills < 20:
            go_on(lives)
            tell(lives, SEED)
        lives.live(None)
    tell(lives, SEED)


def go_on(lives: Lives) -> None:
    """Live one or two lives more: each tenth ends while it starts, and before each tenth an ingest ends."""
    number = lives.figures.kills % 10
    if number == 9:
        lives.die_young(lives.random.uniform(0.0, 2.0))
        return
    if number == 5:
        lives.live(None)
    lives.live(moment(lives), (PLAIN, EARLY)[number % 2])
