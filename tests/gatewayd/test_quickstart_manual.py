"""The manual pages as a collection."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gatewayd import quickstart_manual
from gatewayd.accounts.records import Actor, CredentialKind
from gatewayd.assembly.gateway import Gateway, assemble
from gatewayd.settings import load
from tests.write_manual_texts import texts

TOP = Path(__file__).parents[2]

PAGE = """# pump(8)

## DESCRIPTION

The pump is switched off with the green lever.
"""


def test_every_page_is_found() -> None:
    pages = {page.name for page in (TOP / "man").iterdir()}
    assert {page.name for page in quickstart_manual.find_pages()} == {f"{page}.md" for page in pages}


@pytest.mark.real("mandoc")
def test_the_texts_are_those_of_the_pages() -> None:
    shipped = {page.name: page.read_text() for page in quickstart_manual.find_pages()}
    assert shipped == texts(), "run: python -m tests.write_manual_texts"


async def ask(gateway: Gateway, actor: Actor, question: str) -> str:
    documents = gateway.services.documents
    scope = await documents.scopes.named(
        actor, (await documents.collections.resolve(actor, quickstart_manual.COLLECTION)).id
    )
    found = await documents.retrieval.search([scope], question, documents.search)
    return found.passages[0].stored.text


async def test_questions_about_the_pages_are_answered(state: Path, tmp_path: Path) -> None:
    good, bad = tmp_path / "pump.8.md", tmp_path / "empty.8.md"
    good.write_text(PAGE)
    bad.write_text("")
    settings = load(None, {"DATA_DIR": str(state), "ENABLE_BUILTIN_MODEL": "false"})
    async with AsyncExitStack() as stack:
        gateway = await assemble(settings, stack)
        await gateway.services.documents.start()
        made = await gateway.services.accounts.setup.run("root@example.org", "Root", None)
        actor = Actor(made.user, CredentialKind.CONTROL, (), {})
        problems = await quickstart_manual.ingest([good, bad], gateway.services.documents, actor)
        assert "green lever" in await ask(gateway, actor, "how do I stop the pump?")
    assert len(problems) == 1
    assert "empty.8.md" in problems[0]
