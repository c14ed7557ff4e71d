"""The manual pages as a collection."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gatewayd import manual
from gatewayd.accounts.records import Actor, CredentialKind
from gatewayd.assembly.gateway import Gateway, assemble
from gatewayd.settings import load

PAGE = """.Dd November 21, 2026
.Dt PUMP 8
.Os
.Sh NAME
.Nm pump
.Nd moves water
.Sh DESCRIPTION
The pump is switched off with the green lever.
"""


def test_the_pages_of_a_source_tree_are_found() -> None:
    names = {page.name for page in manual.find_pages()}
    assert {"gatewayd.8", "gatewayctl.1", "gatewayd.toml.5"} <= names


def test_installed_pages_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "share" / "man" / "man8" / "gatewayd.8"
    page.parent.mkdir(parents=True)
    page.write_text(PAGE)
    (page.parent / "other.8").write_text(PAGE)
    monkeypatch.setattr(manual.sys, "prefix", str(tmp_path))
    assert manual.find_pages() == [page]


async def ask(gateway: Gateway, actor: Actor, question: str) -> str:
    documents = gateway.documents
    scope = await documents.scopes.named(
        actor, (await documents.collections.resolve(actor, manual.COLLECTION)).id
    )
    found = await documents.retrieval.search([scope], question, documents.search)
    return found.passages[0].stored.text


async def test_questions_about_the_pages_are_answered(state: Path, tmp_path: Path) -> None:
    good, bad = tmp_path / "pump.8", tmp_path / "empty.8"
    good.write_text(PAGE)
    bad.write_text("")
    settings = load(None, {"DATA_DIR": str(state), "ENABLE_BUILTIN_MODEL": "false"})
    async with AsyncExitStack() as stack:
        gateway = await assemble(settings, stack)
        await gateway.documents.start()
        made = await gateway.accounts.setup.run("root@example.org", "Root", None)
        actor = Actor(made.user, CredentialKind.CONTROL, (), {})
        problems = await manual.ingest([good, bad], gateway.documents, actor)
        assert "green lever" in await ask(gateway, actor, "how do I stop the pump?")
    assert len(problems) == 1
    assert "empty.8" in problems[0]
