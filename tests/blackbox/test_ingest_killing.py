"""A daemon that is killed at any moment of an ingest finishes what it acknowledged, and nothing twice."""

import os
import sys
from pathlib import Path

import pytest

from tests.fakes.ingest_corpus import Tree
from tests.fakes.ingest_lives import Lives
from tests.fakes.orphans import adopting

SEED = 20_260_301
PLAIN, EARLY = "gatewayd", "tests.fakes.early_graphs"


def moment(lives: Lives) -> float:
    """Return how many seconds a life lasts: most end while files come in, some much later."""
    longest = lives.random.choice((1.5, 4.0, 12.0))
    return lives.random.uniform(0.02, longest)


def tell(lives: Lives, seed: int) -> None:
    """Print the figures; pytest shows them with -s, or when the test fails."""
    sys.stdout.write(f"seed {seed}: {lives.figures}\n")
    sys.stdout.flush()


def test_six_kills(tmp_path: Path) -> None:
    lives = Lives(tmp_path / "s", SEED, Tree(SEED, 24, bad=2, paragraphs=3))
    with adopting() as orphans:
        lives.begin(orphans)
        for module in (PLAIN, EARLY, PLAIN, EARLY, PLAIN):
            lives.live(lives.random.uniform(0.1, 2.5), module)
        lives.die_young(lives.random.uniform(0.0, 1.0))
        lives.live(None)
    tell(lives, SEED)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_hundred_kills(tmp_path: Path) -> None:
    seed = int(os.environ.get("INGEST_KILLING_SEED", SEED))
    lives = Lives(tmp_path / "s", seed, Tree(seed, 200, bad=4))
    with adopting() as orphans:
        lives.begin(orphans)
        while lives.figures.kills < 100:
            number = lives.figures.kills
            tell(lives, seed)
            if number % 10 == 9:
                lives.die_young(lives.random.uniform(0.0, 2.0))
            elif number % 10 == 5:
                lives.live(None)
                lives.live(moment(lives), EARLY)
            else:
                lives.live(moment(lives), (PLAIN, EARLY)[number % 2])
        lives.live(None)
    tell(lives, seed)
    assert lives.figures.passes >= 10
    wanted = {
        "with files waiting",
        "while extracting",
        "while embedding",
        "while replacing",
        "with checkpoints",
    }
    assert wanted <= lives.figures.found.keys()
