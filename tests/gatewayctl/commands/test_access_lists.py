"""The verbs for access lists, whatever the noun."""

from dataclasses import dataclass, field
from typing import Annotated

import pytest
import typer

from gatewayctl.client import ControlClient
from gatewayctl.command import Noun, Session
from gatewayctl.commands import access_lists as access
from gatewayctl.failures import CommandError
from gatewayctl.render import View
from gatewayctl.wire.base import Outcome, Written
from gatewayctl.wire.models import Grant, Holders

Asked = tuple[str, Holders, bool]


@dataclass
class Noting:
    """Takes what would be written."""

    asked: list[Asked] = field(default_factory=list)

    def __call__(self, client: ControlClient, thing: str, request: Holders, /, *, dry_run: bool) -> Written:
        self.asked.append((thing, request, dry_run))
        return Written(outcome=Outcome.CHANGED, dry_run=dry_run)


@pytest.fixture
def grants() -> Noting:
    return Noting()


@pytest.fixture
def revocations() -> Noting:
    return Noting()


@pytest.fixture
def noun(grants: Noting, revocations: Noting) -> Noun:
    argument = Annotated[str, typer.Argument(metavar="THING", help="The one.")]
    view: View[Written] = View(name=lambda _: "x", columns={})
    made = Noun("Things.")
    things = access.Things("thing", "To write is more.", argument, view, grants, revocations)
    access.register(made, things, ["gatewayctl thing grant x --everyone"], "gatewayctl thing revoke-access x")
    return made


def run(noun: Noun, *args: str) -> None:
    noun(args=list(args), standalone_mode=False, obj=Session())


def test_who_is_named_gains_and_loses(
    noun: Noun, grants: Noting, revocations: Noting, capsys: pytest.CaptureFixture[str]
) -> None:
    run(noun, "grant", "a", "--user", "ann", "--user", "bob", "--group", "team", "--permission", "write")
    run(noun, "revoke-access", "b", "--everyone", "--dry-run")
    named = Holders(users=["ann", "bob"], groups=["team"], everyone=False, permission="write")
    assert grants.asked == [("a", named, False)]
    assert revocations.asked == [("b", Holders(everyone=True), True)]
    assert capsys.readouterr().out == "changed thing x\ndry run: changed thing x\n"


@pytest.mark.parametrize("verb", ["grant", "revoke-access"])
def test_somebody_must_be_named(verb: str, noun: Noun, grants: Noting, revocations: Noting) -> None:
    with pytest.raises(CommandError, match="without a principal") as caught:
        run(noun, verb, "a", "--permission", "write")
    assert caught.value.exit_code == 2
    assert [*grants.asked, *revocations.asked] == []


def test_the_help_has_the_words_of_the_noun(noun: Noun, capsys: pytest.CaptureFixture[str]) -> None:
    run(noun, "grant", "--help")
    run(noun, "revoke-access", "--help")
    told = " ".join(capsys.readouterr().out.split())
    for part in (
        "Grant users or groups a right on a thing.",
        "Revoke a right on a thing; a right that was not granted is no error.",
        "THING <str> The one.",
        "gatewayctl thing grant x --everyone",
        "gatewayctl thing revoke-access x",
    ):
        assert part in told


def test_an_access_list_tells_who_may_do_more_than_use_it() -> None:
    rows = [
        Grant(principal_type="user", principal_id="*", principal="*", permission="read"),
        Grant(principal_type="user", principal_id="1", principal="ann@example.org", permission="write"),
        Grant(principal_type="group", principal_id="2", principal="team", permission="read"),
    ]
    assert access.shown(rows) == ["*", "user ann@example.org (write)", "group team"]
