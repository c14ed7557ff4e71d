"""The keeper of the SCIM tokens."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import pytest

from gatewayd import ids
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim.tokens.rotation import ScimTokenKeeper, TokenSource, fingerprint
from tests.fakes.accounts.memory_scim_tokens import MemoryScimTokens
from tests.fakes.accounts.memory_stores import Memory

FIRST, SECOND, THIRD = "secret-1", "secret-2", "secret-3"


@dataclass
class Checker:
    """Remembers what is in force."""

    enabled: bool = False
    digests: Sequence[str] = ()

    def replace(self, enabled: bool, digests: Sequence[str]) -> None:
        self.enabled, self.digests = enabled, tuple(digests)

    def accepts(self, *tokens: str) -> bool:
        """Whether these are the tokens in force."""
        return self.enabled and self.digests == tuple(map(ids.digest, tokens))


@dataclass
class Scene:
    """A node, on a database of its own or that of another."""

    path: Path
    memory: Memory = field(default_factory=Memory)
    numbers: count = field(default_factory=lambda: count(1))
    checker: Checker = field(default_factory=Checker)

    def __post_init__(self) -> None:
        self.source = TokenSource(True, self.path)
        self.outside = TokenSource(True, self.path, ("t",), "environment SCIM_TOKEN", is_external=True)
        self.store = MemoryScimTokens(self.memory)
        self.keeper = ScimTokenKeeper(
            self.checker,
            self.source,
            self.store,
            self.memory,
            lambda: f"secret-{next(self.numbers)}",
            lambda: 1_000,
        )


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "scim-token")


@pytest.fixture
def other(scene: Scene, tmp_path: Path) -> Scene:
    """Another node, with a file of its own."""
    return Scene(tmp_path / "other", scene.memory, scene.numbers)


async def test_a_token_from_first_to_last(scene: Scene, other: Scene) -> None:
    assert await scene.keeper.create() == FIRST
    assert scene.checker.accepts(FIRST)
    assert await scene.keeper.rotate() == SECOND
    assert scene.checker.accepts(SECOND, FIRST)
    await other.keeper.open()
    assert other.checker.accepts(SECOND, FIRST)
    assert await scene.keeper.retire() == fingerprint(FIRST)
    assert scene.checker.accepts(SECOND)
    await other.keeper.load()
    assert other.checker.accepts(SECOND)
    assert FIRST not in str(scene.memory.tables.scim_tokens)
    assert not scene.path.exists()


async def test_verbs_that_the_number_of_tokens_does_not_allow(scene: Scene) -> None:
    async def refused(verb: str) -> str:
        with pytest.raises(GatewayError) as caught:
            await getattr(scene.keeper, verb)()
        assert caught.value.kind is ErrorKind.CONFLICT
        return caught.value.message

    assert await refused("rotate") == "cannot rotate the SCIM token: there is none yet, create one"
    assert await refused("retire") == "cannot retire a SCIM token: there is none, rotate it first"
    await scene.keeper.create()
    assert "there is one already" in await refused("create")
    assert await refused("retire") == "cannot retire a SCIM token: there is only one, rotate it first"
    await scene.keeper.rotate()
    assert "there are two already, retire the older one" in await refused("rotate")
    assert scene.checker.accepts(SECOND, FIRST)


async def test_a_dry_run_keeps_nothing(scene: Scene) -> None:
    scene.path.write_text("of-the-file")
    with pytest.raises(GatewayError, match="there is one already"):
        await scene.keeper.create(dry_run=True)
    assert await scene.store.list() == []
    scene.path.unlink()
    await scene.keeper.create(dry_run=True)
    assert await scene.store.list() == []
    await scene.keeper.create()
    await scene.keeper.rotate(dry_run=True)
    await scene.keeper.rotate()
    await scene.keeper.retire(dry_run=True)
    assert scene.checker.accepts(THIRD.replace("3", "4"), SECOND)


async def test_tokens_from_elsewhere_are_left_alone(scene: Scene) -> None:
    await scene.keeper.create()
    scene.path.write_text("of-the-file")
    await scene.keeper.configure(scene.outside)
    for verb in (scene.keeper.create, scene.keeper.rotate, scene.keeper.retire):
        with pytest.raises(GatewayError, match="set by environment SCIM_TOKEN; change it there") as caught:
            await verb()
        assert caught.value.kind is ErrorKind.CONFLICT
    report = await scene.keeper.describe()
    assert (report.origin, report.is_external, report.written_at) == ("environment SCIM_TOKEN", True, None)
    assert (report.fingerprints, report.is_stale) == ((fingerprint("t"),), False)
    assert scene.checker.accepts("t")
    assert len(await scene.store.list()) == 1
    await scene.keeper.configure(replace(scene.source, enabled=False))
    assert not scene.checker.enabled


async def test_a_token_made_while_scim_is_off_waits(scene: Scene) -> None:
    await scene.keeper.configure(replace(scene.source, enabled=False))
    await scene.keeper.create()
    assert not scene.checker.enabled
    assert (await scene.keeper.describe()).enabled is False
    await scene.keeper.configure(scene.source)
    assert scene.checker.accepts(FIRST)


async def test_what_is_told_has_no_value(scene: Scene) -> None:
    empty = await scene.keeper.describe()
    assert (empty.fingerprints, empty.written_at, empty.is_stale) == ((), None, False)
    await scene.keeper.create()
    await scene.keeper.rotate()
    report = await scene.keeper.describe()
    assert report.fingerprints == (ids.digest(SECOND)[:12], ids.digest(FIRST)[:12])
    assert (report.written_at, report.origin, report.is_stale) == (1_000, "the database", False)
    assert "secret" not in repr(report)
    assert "secret" not in repr(replace(scene.source, values=("secret",)))


async def test_a_start_without_tokens_is_told_of(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    await scene.keeper.configure(replace(scene.source, enabled=False))
    assert not caplog.records
    await scene.keeper.configure(scene.source)
    assert "SCIM clients are refused: there is no SCIM token yet" in caplog.text


# The file


async def test_the_tokens_of_a_file_are_taken_over_once(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.path.write_text("new\nold\n")
    assert (await scene.keeper.describe()).is_stale
    with caplog.at_level(logging.INFO):
        await scene.keeper.open()
        await scene.keeper.open()
    assert caplog.messages == ["the database has the SCIM tokens of the file now"]
    assert scene.checker.accepts("new", "old")
    assert scene.path.read_text() == "new\nold\n"
    # What the file still has does not come back.
    assert await scene.keeper.retire() == fingerprint("old")
    await scene.keeper.open()
    assert scene.checker.accepts("new")
    assert not (await scene.keeper.describe()).is_stale


async def test_nodes_that_start_together_take_over_once(scene: Scene, other: Scene) -> None:
    scene.path.write_text("new\nold\n")
    other.path.write_text("new\nold\n")
    await asyncio.gather(*(node.keeper.open() for node in (scene, other, scene, other)))
    for node in (scene, other):
        assert node.checker.accepts("new", "old")
    # Retired on one, it is refused on another whose file has it, also after a restart.
    await scene.keeper.retire()
    await other.keeper.open()
    assert other.checker.accepts("new")


async def test_a_file_is_not_read_while_scim_is_off(scene: Scene) -> None:
    scene.path.write_text("a b c")
    await scene.keeper.configure(replace(scene.source, enabled=False))
    scene.path.write_text("a")
    await scene.keeper.configure(scene.source)
    assert scene.checker.accepts("a")


async def test_a_token_in_an_edited_file_is_taken_over_if_there_is_room(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    await scene.keeper.create()
    scene.path.write_text("other\n")
    assert (await scene.keeper.describe()).is_stale
    await scene.keeper.open()
    assert scene.checker.accepts("other", FIRST)
    scene.path.write_text("third\n")
    await scene.keeper.open()
    assert "there would be over 2, retire the older one" in caplog.text
    assert scene.checker.accepts("other", FIRST)
    assert await scene.keeper.retire() == fingerprint(FIRST)
    await scene.keeper.open()
    assert scene.checker.accepts("third", "other")


async def test_a_verb_takes_over_no_token_behind_the_one_in_use(scene: Scene) -> None:
    await scene.keeper.create()
    scene.path.write_text("other\n")
    with pytest.raises(GatewayError, match="there is only one"):
        await scene.keeper.retire()
    assert await scene.keeper.rotate() == SECOND
    # A token that leaked can be retired, whatever the file has.
    scene.path.write_text("a b c")
    assert await scene.keeper.retire() == fingerprint(FIRST)
    assert scene.checker.accepts(SECOND)


async def test_a_malformed_file_is_told_of_and_kept(scene: Scene) -> None:
    scene.path.write_text("a b c")
    for work in (scene.keeper.create(), scene.keeper.describe()):
        with pytest.raises(GatewayError) as caught:
            await work
        assert caught.value.kind is ErrorKind.NOT_CONFIGURED
    assert scene.path.read_text() == "a b c"


# Several at once


async def test_verbs_exclude_each_other(scene: Scene, other: Scene) -> None:
    keepers = [scene.keeper, other.keeper] * 4
    done = await asyncio.gather(*(keeper.create() for keeper in keepers), return_exceptions=True)
    assert [each for each in done if isinstance(each, str)] == [FIRST]
    assert [each.digest for each in await scene.store.list()] == [ids.digest(FIRST)]


async def test_a_reload_during_a_change_wins(scene: Scene) -> None:
    changing = asyncio.ensure_future(scene.keeper.create())
    await asyncio.sleep(0)
    await scene.keeper.configure(scene.outside)
    await changing
    assert scene.checker.accepts("t")


async def test_without_the_database_nothing_changes(scene: Scene) -> None:
    await scene.keeper.create()
    scene.memory.is_away = True
    for work in (scene.keeper.rotate(), scene.keeper.load(), scene.keeper.describe()):
        with pytest.raises(GatewayError) as caught:
            await work
        assert caught.value.kind is ErrorKind.UNAVAILABLE
    assert scene.checker.accepts(FIRST)
    # A reload that turns SCIM off holds, though it fails later.
    with pytest.raises(GatewayError):
        await scene.keeper.configure(replace(scene.source, enabled=False))
    assert not scene.checker.enabled


async def test_a_change_holds_if_the_database_is_away_after_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.keeper.create()
    await scene.keeper.rotate()
    retire = scene.store.retire

    async def retire_and_fail(digest: str, at: int) -> None:
        await retire(digest, at)
        scene.memory.is_away = True

    monkeypatch.setattr(scene.store, "retire", retire_and_fail)
    assert await scene.keeper.retire() == fingerprint(FIRST)
    assert scene.checker.accepts(SECOND)
