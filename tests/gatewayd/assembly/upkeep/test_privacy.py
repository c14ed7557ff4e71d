"""Tests for gatewayd.assembly.upkeep.privacy: the erasure of people over the real services and engines."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gatewayd.accounts.records import NewUser, Role
from gatewayd.assembly.gateway import assemble
from gatewayd.assembly.services import GatewayServices
from gatewayd.assembly.upkeep.privacy import make_erasure
from gatewayd.audit.records import AuditQuery
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.metering.usage_records import UsageDimension, UsageQuery, UsageSums
from gatewayd.privacy.erasure import pseudonym_of
from gatewayd.settings import Settings
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
