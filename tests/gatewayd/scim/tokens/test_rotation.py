"""The keeper of the SCIM tokens."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import pytest

from gatewayd import ids
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim.tokens.file import read_tokens
from gatewayd.scim.tokens.rotation import ScimTokenKeeper, TokenSource, fingerprint


@dataclass
class Checker:
    """Remembers what is in force."""

    enabled: bool = False
    tokens: Sequence[str] = ()

    def replace(self, enabled: bool, tokens: Sequence[str]) -> None:
        self.enabled, self.tokens = enabled, tuple(tokens)


@dataclass
class Scene:
    path: Path
    checker: Checker = field(default_factory=Checker)
    numbers: count = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.source = TokenSource(
            enabled=True, values=(), path=self.path, origin="default", is_external=False
        )
        self.keeper = ScimTokenKeeper(self.checker, self.source, lambda: f"secret-{next(self.numbers)}")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "scim-token")


async def test_a_token_from_first_to_last(scene: Scene) -> None:
    assert await scene.keeper.create() == "secret-1"
    assert (scene.checker.enabled, scene.checker.tokens) == (True, ("secret-1",))
    assert await scene.keeper.rotate() == "secret-2"
    assert scene.checker.tokens == read_tokens(scene.path) == ("secret-2", "secret-1")
    assert await scene.keeper.retire() == fingerprint("secret-1")
    assert scene.checker.tokens == read_tokens(scene.path) == ("secret-2",)


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
    assert read_tokens(scene.path) == ("secret-2", "secret-1")


async def test_a_dry_run_keeps_nothing(scene: Scene) -> None:
    await scene.keeper.create(dry_run=True)
    assert not scene.path.exists()
    await scene.keeper.create()
    await scene.keeper.rotate(dry_run=True)
    assert scene.checker.tokens == read_tokens(scene.path) == ("secret-2",)


async def test_tokens_from_elsewhere_are_left_alone(scene: Scene) -> None:
    outside = replace(scene.source, values=("t",), origin="environment SCIM_TOKEN", is_external=True)
    scene.keeper.configure(outside)
    for verb in (scene.keeper.create, scene.keeper.rotate, scene.keeper.retire):
        with pytest.raises(GatewayError, match="set by environment SCIM_TOKEN; change it there") as caught:
            await verb()
        assert caught.value.kind is ErrorKind.CONFLICT
    report = await scene.keeper.describe()
    assert (report.origin, report.is_external, report.written_at) == ("environment SCIM_TOKEN", True, None)
    assert report.fingerprints == (fingerprint("t"),)
    assert not scene.path.exists()


async def test_a_reload_puts_its_tokens_in_force(scene: Scene) -> None:
    scene.keeper.configure(replace(scene.source, enabled=False, values=("a", "b")))
    assert (scene.checker.enabled, scene.checker.tokens) == (False, ("a", "b"))


async def test_a_token_made_while_scim_is_off_waits(scene: Scene) -> None:
    scene.keeper.configure(replace(scene.source, enabled=False))
    await scene.keeper.create()
    assert (scene.checker.enabled, scene.checker.tokens) == (False, ("secret-1",))
    assert (await scene.keeper.describe()).enabled is False


async def test_what_is_told_has_no_value(scene: Scene) -> None:
    empty = await scene.keeper.describe()
    assert (empty.fingerprints, empty.written_at, empty.is_stale) == ((), None, False)
    await scene.keeper.create()
    await scene.keeper.rotate()
    report = await scene.keeper.describe()
    assert report.fingerprints == (ids.digest("secret-2")[:12], ids.digest("secret-1")[:12])
    assert report.written_at == int(scene.path.stat().st_mtime)
    assert (report.origin, report.is_stale) == (f"file {scene.path}", False)
    assert "secret" not in repr(report)
    assert "secret" not in repr(replace(scene.source, values=("secret",)))


async def test_a_file_that_was_changed_by_hand_is_told_of(scene: Scene) -> None:
    await scene.keeper.create()
    scene.path.write_text("other\n")
    report = await scene.keeper.describe()
    assert (report.is_stale, report.fingerprints) == (True, (fingerprint("other"),))
    await scene.keeper.rotate()
    assert scene.checker.tokens == ("secret-2", "other")


async def test_a_malformed_file_is_told_of_and_kept(scene: Scene) -> None:
    scene.path.write_text("a b c")
    for work in (scene.keeper.create(), scene.keeper.describe()):
        with pytest.raises(GatewayError) as caught:
            await work
        assert caught.value.kind is ErrorKind.NOT_CONFIGURED
    assert scene.path.read_text() == "a b c"


async def test_verbs_exclude_each_other(scene: Scene) -> None:
    done = await asyncio.gather(*(scene.keeper.create() for _ in range(8)), return_exceptions=True)
    assert [each for each in done if isinstance(each, str)] == ["secret-1"]
    assert read_tokens(scene.path) == ("secret-1",)


async def test_a_reload_during_a_write_wins(scene: Scene) -> None:
    outside = replace(scene.source, values=("t",), origin="environment SCIM_TOKEN", is_external=True)
    writing = asyncio.ensure_future(scene.keeper.create())
    await asyncio.sleep(0)
    scene.keeper.configure(outside)
    await writing
    assert scene.checker.tokens == ("t",)
