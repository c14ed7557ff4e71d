"""Faults of a bed, each a block inside which it lasts. `random` chooses whom it meets."""

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from random import Random

from tests.fakes.cluster.bed import Bed, Node
from tests.fakes.daemons.nodes import LEASE_SECONDS


@contextlib.contextmanager
def killed(bed: Bed, random: Random) -> Iterator[None]:
    """Kill a node, and start it again at the end."""
    node = random.choice(bed.nodes)
    node.end(signal.SIGKILL)
    yield
    node.begin()


@contextlib.contextmanager
def paused(bed: Bed, random: Random) -> Iterator[None]:
    """Let a node stand still for longer than its lease."""
    node = random.choice(bed.nodes)
    node.send(signal.SIGSTOP)
    try:
        yield
        time.sleep(LEASE_SECONDS + 1)
    finally:
        node.send(signal.SIGCONT)


@contextlib.contextmanager
def redis_emptied(bed: Bed, random: Random) -> Iterator[None]:
    """Restart Redis, which keeps nothing."""
    bed.redis.stop()
    yield
    bed.redis.start()


@contextlib.contextmanager
def postgres_restarted(bed: Bed, random: Random) -> Iterator[None]:
    """Restart PostgreSQL: every connection is cut."""
    bed.postgres.shut_down()
    yield
    bed.postgres.start()


@contextlib.contextmanager
def redis_cut(bed: Bed, random: Random) -> Iterator[None]:
    """Cut the link of a node to Redis, with or without telling it."""
    link = random.choice(bed.nodes).to_redis
    random.choice([link.cut, link.hold])()
    yield
    link.heal()


@contextlib.contextmanager
def postgres_cut(bed: Bed, random: Random) -> Iterator[None]:
    """Cut the link of a node to PostgreSQL, with or without telling it, for longer than its lease."""
    link = random.choice(bed.nodes).to_postgres
    random.choice([link.cut, link.hold])()
    yield
    time.sleep(LEASE_SECONDS)
    link.heal()


@contextlib.contextmanager
def restarted_in_turn(bed: Bed, random: Random) -> Iterator[None]:
    """Restart one node after the other, as an upgrade does."""
    nodes: list[Node] = random.sample(bed.nodes, len(bed.nodes))
    nodes[0].end()
    nodes[0].begin()
    yield
    for node in nodes[1:]:
        node.end()
        node.begin()


Nemesis = Callable[[Bed, Random], AbstractContextManager[None]]
NEMESES: list[Nemesis] = [
    killed,
    redis_emptied,
    paused,
    postgres_cut,
    redis_cut,
    postgres_restarted,
    restarted_in_turn,
]
