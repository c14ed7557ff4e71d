"""Tests for gatewayd.assembly.upkeep.privacy: export and erasure of people over the real engines."""

import io
import json
import tarfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gatewayd.accounts.records import ApiKey, NewUser, Role
from gatewayd.assembly.gateway import assemble
from gatewayd.assembly.services import GatewayServices
from gatewayd.assembly.upkeep.privacy import make_erasure, make_export
from gatewayd.audit.records import GATEWAY_ACTOR, AuditEntry, AuditQuery
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.metering.usage_records import UsageDimension, UsageQuery, UsageSums
from gatewayd.privacy.erasure import pseudonym_of
from gatewayd.settings import Settings
from gatewayd.storage.keys import TortoiseKeys
from gatewayd.storage.models import TortoiseModels
from gatewayd.storage.tables.documents import LinkRow
from gatewayd.storage.upkeep.person_rows import TortoisePersonRows
from tests.fakes.storage.person import Person, fill_person
from tests.fakes.storage.postgres import Postgres
from tests.gatewayd.assembly.test_gateway import settings_for

ENGINES = ("sqlite", "postgres")


@pytest.fixture(params=ENGINES)
def settings(request: pytest.FixtureRequest, state: Path) -> Settings:
    if request.param == "sqlite":
        return settings_for(state)
    postgres: Postgres = request.getfixturevalue("postgres")
    return settings_for(state, DATABASE_URL=postgres.migrated_database())


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[GatewayServices]:
    async with AsyncExitStack() as stack:
        yield (await assemble(settings, stack)).services


async def left(person: Person) -> Mapping[str, int]:
    """Return what is left of a person, by kind."""
    counts = await TortoisePersonRows().counts(person.user.id, person.user.email)
    return {kind: count for kind, count in counts.items() if count}


async def usage_of(services: GatewayServices, user_id: str) -> Any:
    query = UsageQuery((UsageDimension.USER, UsageDimension.KEY), user_id=user_id)
    return [(line.ids, line.names, line.sums) for line in await services.metering.usage.report(query)]


async def test_everything_of_a_person_is_erased_and_nothing_of_others(settings: Settings) -> None:
    async with opened(settings) as services:
        await services.accounts.users.create(NewUser("root@example.org", "Root", Role.ADMIN))
        ada = await fill_person(services, "ada", Role.ADMIN)
        bob = await fill_person(services, "bob")
        theirs, before = await left(bob), await left(ada)
        erasure = make_erasure(services)
        planned = await erasure.count("ada@example.org")
        assert (planned.user_id, planned.counts, await left(ada)) == (ada.user.id, before, before)
        assert (await services.accounts.users.get(ada.user.id)).active
        report = await erasure.erase("ada@example.org")
        assert (report.user_id, report.counts) == (ada.user.id, before)
        assert (await left(ada), await left(bob)) == ({}, theirs)
        assert [path.exists() for path in ada.paths] == [False] * 4
        assert all(path.exists() for path in bob.paths)
        assert (services.tasks.find(ada.task_id), services.tasks.find(bob.task_id) is None) == (None, False)
        pseudonym = pseudonym_of(ada.user.id)
        assert await usage_of(services, pseudonym) == [((pseudonym, ""), ("", ""), UsageSums(4, prompt=6))]
        model = await TortoiseModels().find("ada-m")
        assert model is not None
        assert (model.user_id, [grant.principal_id for grant in model.grants]) == (pseudonym, ["*"])
        # A file of theirs in a collection of others is gone too, with its link.
        assert await LinkRow.filter(collection_id="ada-team").count() == 0
        with pytest.raises(GatewayError) as gone:
            await erasure.erase(ada.user.id)
        assert gone.value.kind is ErrorKind.NOT_FOUND
        [begun] = await services.audit.store.find(AuditQuery(action="user erasure begun"))
        assert begun.subject == ada.user.id


async def test_everything_of_a_person_is_exported_without_secrets(settings: Settings) -> None:
    async with opened(settings) as services:
        ada, bob = await fill_person(services, "ada"), await fill_person(services, "bob")
        await services.accounts.users.set_password(ada.user.id, "a long enough password")
        await TortoiseKeys().add(ApiKey("k9", ada.user.id, "laptop", "d" * 64, "sk-1"))
        services.audit.trail.record(AuditEntry("user change", GATEWAY_ACTOR, subject=ada.user.email))
        await services.audit.trail.drain(5)
        export = make_export(services)
        user = await export.find("ada@example.org")
        data, again = [b"".join([piece async for piece in export.archive(user)]) for _ in range(2)]
        assert data == again
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            found = {each.name: archive.extractfile(each).read() for each in archive}  # type: ignore[union-attr]
        rows = {
            name.removeprefix("records/").removesuffix("-00001.jsonl"): [
                json.loads(line) for line in content.splitlines()
            ]
            for name, content in found.items()
            if name.startswith("records/")
        }
        counted = {kind.replace(" ", "-"): count for kind, count in (await left(ada)).items()}
        apart = {"chats", "counters-of-limits", "entries-of-access-lists"}
        assert {kind: len(rows[kind]) for kind in counted if kind not in apart} == {
            kind: count for kind, count in counted.items() if kind not in apart
        }
        [account] = rows["accounts"]
        assert (account["email"], account["active"], account["profile"]) == ("ada@example.org", True, {})
        assert [row["name"] for row in rows["API-keys"]] == ["laptop"]
        assert rows["rows-of-the-audit-log"][-1]["action"] == "user change"
        assert found["files/ada-file-1/1.txt"] == b"ada 1"
        assert json.loads(found["chats/ada-c1.json"])["title"] == "Ä chat"
        joined = b"".join(found.values())
        assert not any(
            secret in joined for secret in (b"argon2", b"digest", b'valves":', bob.user.id.encode())
        )
        with pytest.raises(GatewayError) as unknown:
            await export.find("nobody@example.org")
        assert unknown.value.kind is ErrorKind.NOT_FOUND


async def test_the_last_administrator_is_refused_and_keeps_everything(settings: Settings) -> None:
    async with opened(settings) as services:
        ada = await fill_person(services, "ada", Role.ADMIN)
        before = await left(ada)
        for work in (make_erasure(services).count, make_erasure(services).erase):
            with pytest.raises(GatewayError) as refused:
                await work(ada.user.email)
            assert (refused.value.kind, refused.value.code) == (ErrorKind.CONFLICT, "last_administrator")
        assert await left(ada) == before


async def test_what_a_removed_account_left_is_erased_by_its_id(settings: Settings) -> None:
    async with opened(settings) as services:
        ada = await fill_person(services, "ada")
        await services.accounts.users.remove(ada.user.id, None)
        report = await make_erasure(services).erase(ada.user.id)
        assert {"files": 3, "collections": 1, "rows of usage": 2}.items() <= report.counts.items()
        assert await left(ada) == {}
        assert [path.exists() for path in ada.paths[:3]] == [False] * 3


class KilledError(BaseException):
    """The process ends here."""


STEPS = (
    "gatewayd.storage.chats.TortoiseChats.purge",
    "gatewayd.storage.files.TortoiseFiles.remove",
    "gatewayd.storage.batches.TortoiseBatchFiles.remove",
    "gatewayd.storage.collections.TortoiseCollections.remove",
    "gatewayd.storage.limits.rules.TortoiseLimitRules.remove",
    "gatewayd.storage.upkeep.person_rows.TortoisePersonRows.remove",
    "gatewayd.storage.upkeep.person_rows.TortoisePersonRows.rename",
    "gatewayd.storage.limits.usage.TortoiseUsage.rename",
    "gatewayd.storage.users.TortoiseUsers.remove",
)


async def test_an_erasure_that_is_killed_at_each_step_converges(state: Path) -> None:
    settings = settings_for(state)
    async with opened(settings) as services:
        ada = await fill_person(services, "ada")
    for step in STEPS:
        async with opened(settings) as services:
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(step, _killed)
                with pytest.raises(KilledError):
                    await make_erasure(services).erase("ada@example.org")
            # Nobody signs in as them from the first step on.
            assert not (await services.accounts.users.get(ada.user.id)).active
    async with opened(settings) as services:
        await make_erasure(services).erase("ada@example.org")
        assert await left(ada) == {}
        pseudonym = pseudonym_of(ada.user.id)
        assert [sums for _, _, sums in await usage_of(services, pseudonym)] == [UsageSums(4, prompt=6)]
        assert not any(path.exists() for path in ada.paths)


async def _killed(*_: object, **__: object) -> None:
    raise KilledError
