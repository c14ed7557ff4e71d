"""Tests for gatewayd.catalog.providers.service."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gatewayd.catalog.providers.options import MASK, NO_OPTIONS, ConnectionOptions
from gatewayd.catalog.providers.records import (
    ConfiguredProviders,
    ManagedProvider,
    ProviderFamily,
    ProviderForm,
    ProviderOffer,
    StoredProviders,
)
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.providers.managed import LOCKED, FakeTester, MemoryProviderStore, configured, managed

OPENAI, OLLAMA = ProviderFamily.OPENAI, ProviderFamily.OLLAMA
HELD = ManagedProvider("p1", "acme", "openai", "https://acme.test/v1", key="held-key")


def held_store(*others: ManagedProvider) -> MemoryProviderStore:
    return MemoryProviderStore(StoredProviders((HELD, *others), {}, 4))


def form(*providers: ManagedProvider, **more: Any) -> ProviderForm:
    return ProviderForm(OPENAI, providers, **more)


async def refused(wanted: ProviderForm, **more: Any) -> GatewayError:
    store = held_store()
    service = await managed(store, **more)
    with pytest.raises(GatewayError) as caught:
        await service.replace(wanted, by="a")
    assert store.saves == []
    return caught.value


async def test_providers_of_the_settings_come_first_and_are_never_stored() -> None:
    store = held_store()
    service = await managed(store)
    assert [each.name for each in service.show(OPENAI).providers] == ["hosted", "acme"]
    shown = service.show(OPENAI)
    masked = [replace(each, key=MASK) for each in shown.providers]
    await service.replace(form(*masked), by="a")
    assert store.stored.providers == (HELD,)
    assert store.saves == ["a"]


async def test_a_change_is_used_at_once_and_a_mask_keeps_the_key() -> None:
    store, used = held_store(), []
    service = await managed(store)
    service.on_change = lambda: used.append([each.name for each in service.in_use()])
    added = ManagedProvider("", "", "openai", "https://new.test", key="n")
    shown = await service.replace(form(replace(HELD, key=MASK, name="renamed"), added), by="a")
    assert used == [["renamed", "new.test"]]
    assert store.stored.providers[0].key == "held-key"
    assert (shown.revision, shown.providers[-1].id != "") == (5, True)


async def test_entries_without_an_id_stand_for_the_provider_at_their_address() -> None:
    store = held_store()
    service = await managed(store)
    bare = [
        ManagedProvider("", "", "openai", LOCKED.base_url),
        ManagedProvider("", "", "openai", HELD.base_url, key=MASK),
    ]
    await service.replace(form(*bare), by="a")
    assert store.stored.providers == (HELD,)


async def test_a_key_does_not_go_to_another_host() -> None:
    error = await refused(form(replace(HELD, key=MASK, base_url="https://evil.test/v1")))
    assert (error.kind, error.param) == (ErrorKind.INVALID_REQUEST, "key")
    service = await managed(held_store())
    with pytest.raises(GatewayError, match="enter it again"):
        await service.test(replace(HELD, key=MASK, base_url="http://acme.test/v1"))


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({"base_url": "https://other.test"}, ErrorKind.CONFLICT),
        ({"key": "another"}, ErrorKind.CONFLICT),
        ({"is_active": False}, ErrorKind.CONFLICT),
        ({"models": ("m",)}, ErrorKind.CONFLICT),
        ({"id": "settings:gone"}, ErrorKind.INVALID_REQUEST),
    ],
)
async def test_providers_of_the_settings_cannot_be_changed(changed: Any, kind: ErrorKind) -> None:
    assert (await refused(form(replace(LOCKED, **{"key": MASK, **changed})))).kind is kind


@pytest.mark.parametrize(
    ("provider", "param"),
    [
        (ManagedProvider("", "hosted", "openai", "https://x.test"), "name"),
        (ManagedProvider("", "x", "openai", "ftp://x.test"), "base_url"),
        (ManagedProvider("", "x", "openai", "https://u:p@x.test"), "base_url"),
        (ManagedProvider("", "x", "openai", "https://x.test", key="a b"), "key"),
        (ManagedProvider("", "x", "openai", "https://x.test", key=MASK), "key"),
    ],
)
async def test_a_wrong_provider_changes_nothing(provider: ManagedProvider, param: str) -> None:
    assert (await refused(form(provider))).param == param


async def test_two_providers_cannot_have_one_name() -> None:
    twice = ManagedProvider("", "x", "openai", "https://x.test")
    assert (await refused(form(twice, twice))).param == "name"


async def test_of_two_administrators_the_later_one_is_told() -> None:
    store = held_store()
    service = await managed(store)
    wanted = [form(ManagedProvider("", f"n{n}", "openai", "https://x.test"), revision=4) for n in range(2)]
    found = await asyncio.gather(*(service.replace(each, by="a") for each in wanted), return_exceptions=True)
    (failed,) = [each for each in found if isinstance(each, GatewayError)]
    assert (failed.kind, failed.param, len(store.saves)) == (ErrorKind.CONFLICT, "revision", 1)


async def test_the_families_do_not_touch_each_other() -> None:
    runtime = ManagedProvider("r1", "near", "ollama", "http://near.test")
    store = held_store(runtime)
    service = await managed(store)
    await service.replace(form(), by="a")
    assert store.stored.providers == (runtime,)
    assert service.show(OLLAMA).providers == (runtime,)


async def test_the_switch_follows_the_runtime_settings() -> None:
    service = await managed(held_store(), given=configured(enabled=True, explicit=True))
    await service.replace(form(HELD, enabled=False), by="a")
    assert not service.is_enabled(OPENAI)
    assert service.in_use() == []
    fixed = {"persistent": False, "given": configured(enabled=True, explicit=True)}
    error = await refused(form(HELD, enabled=False), **fixed)
    assert (error.kind, error.param) == (ErrorKind.CONFLICT, "ENABLE_OPENAI_API")
    assert "environment ENABLE_OPENAI_API sets it" in error.message


async def test_a_stored_switch_waits_while_the_settings_fix_it() -> None:
    store = MemoryProviderStore(StoredProviders((), {OPENAI: False}, 1))
    service = await managed(store, persistent=False, given=configured(enabled=True, explicit=True))
    assert service.is_enabled(OPENAI)
    service.configure(configured(enabled=True, explicit=False))
    assert not service.is_enabled(OPENAI)


async def test_a_name_that_the_settings_take_later_puts_the_stored_provider_out_of_use() -> None:
    service = await managed(held_store())
    service.configure(ConfiguredProviders((replace(LOCKED, name="acme"),)))
    assert service.in_use() == []
    assert "settings" in service.problems()["p1"]


async def test_an_unreadable_key_stays_until_another_is_entered() -> None:
    locked = replace(HELD, key="", unreadable_key="sealed:1:x", problem="enter the key again")
    store = MemoryProviderStore(StoredProviders((locked,), {}, 1))
    service = await managed(store)
    assert service.in_use() == []
    await service.replace(form(replace(HELD, key=MASK)), by="a")
    assert store.stored.providers[0].unreadable_key == "sealed:1:x"
    with pytest.raises(GatewayError, match="enter the key again"):
        await service.test(replace(HELD, key=MASK))
    await service.replace(form(replace(HELD, key="new")), by="a")
    assert [each.key for each in service.in_use()] == ["new"]


async def test_a_stored_provider_that_is_no_longer_accepted_is_not_used() -> None:
    store = MemoryProviderStore(StoredProviders((replace(HELD, base_url="ftp://x"),), {}, 1))
    service = await managed(store)
    assert service.in_use() == []
    assert "base_url" in service.problems()["p1"]


async def test_a_test_uses_the_stored_key_of_either_kind() -> None:
    tester = FakeTester()
    service = await managed(held_store(), tester)
    assert (await service.test(replace(HELD, key=MASK))).models == ("m-1", "m-2")
    await service.test(ManagedProvider("", "", "openai", LOCKED.base_url, key=MASK))
    assert [each.key for each in tester.tested] == ["held-key", "file-key"]


OPTIONS = ConnectionOptions(
    ("key-2", "key-3"), (("X-Team", "red"),), "2025-01-01", "chat", (("prod", "gpt-5"),)
)


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        (NO_OPTIONS, OPTIONS),
        (ConnectionOptions((MASK, MASK), (("X-Team", MASK),)), OPTIONS),
        (ConnectionOptions((MASK, "new")), replace(OPTIONS, keys=("key-2", "new"))),
        (
            ConnectionOptions(headers=(("X-Team", MASK), ("X-B", "b"))),
            replace(OPTIONS, headers=(("X-Team", "red"), ("X-B", "b"))),
        ),
        (ConnectionOptions((), (), "", "", ()), NO_OPTIONS),
        (ConnectionOptions(upstream="responses"), replace(OPTIONS, upstream="responses")),
    ],
    ids=str,
)
async def test_options_that_a_form_leaves_or_masks_stay(sent: Any, stored: Any) -> None:
    store = MemoryProviderStore(StoredProviders((replace(HELD, options=OPTIONS),), {}, 4))
    service = await managed(store)
    await service.replace(form(replace(HELD, key=MASK, options=sent)), by="a")
    assert store.stored.providers[0].options == stored


@pytest.mark.parametrize(
    ("sent", "changes", "param"),
    [
        (ConnectionOptions((MASK,)), {"base_url": "https://evil.test", "key": "n"}, "keys"),
        (
            ConnectionOptions(headers=(("X-Team", MASK),)),
            {"base_url": "https://evil.test", "key": "n"},
            "headers",
        ),
        (ConnectionOptions((MASK, MASK, MASK)), {}, "keys"),
        (ConnectionOptions(headers=(("X-Other", MASK),)), {}, "headers"),
    ],
)
async def test_a_mask_needs_what_it_stands_for(sent: Any, changes: Any, param: str) -> None:
    service = await managed(MemoryProviderStore(StoredProviders((replace(HELD, options=OPTIONS),), {}, 4)))
    with pytest.raises(GatewayError) as caught:
        await service.replace(form(replace(HELD, options=sent, **changes)), by="a")
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, param)


async def test_options_do_not_go_to_another_host() -> None:
    store = MemoryProviderStore(StoredProviders((replace(HELD, options=OPTIONS),), {}, 4))
    service = await managed(store)
    await service.replace(form(replace(HELD, key="n", base_url="https://other.test")), by="a")
    assert store.stored.providers[0].options == NO_OPTIONS


class RefusingTester(FakeTester):
    async def test(self, provider: ManagedProvider) -> ProviderOffer:
        raise GatewayError(ErrorKind.UPSTREAM_FAILED, "the provider refuses its key")


async def test_a_new_key_is_tested_alone_and_used_at_once() -> None:
    several = replace(HELD, options=ConnectionOptions(keys=("second",)))
    store, tester, used = MemoryProviderStore(StoredProviders((several,), {}, 4)), FakeTester(), []
    service = await managed(store, tester)
    service.on_change = lambda: used.append([each.all_keys for each in service.in_use()])
    tested, offer = await service.test_key("acme", "new-key")
    assert [each.all_keys for each in tester.tested] == [("new-key",)]
    assert (offer.models, used) == (("m-1", "m-2"), [])
    await service.replace_key(tested, by="ann")
    assert used == [[("new-key", "second")]]
    assert (store.stored.revision, store.saves) == (5, ["ann"])


async def test_a_refused_key_leaves_the_former_one() -> None:
    store = held_store()
    service = await managed(store, RefusingTester())
    with pytest.raises(GatewayError, match="refuses its key"):
        await service.test_key("acme", "new-key")
    assert (store.saves, service.in_use()[0].key) == ([], "held-key")


async def test_a_provider_that_has_changed_meanwhile_keeps_its_key() -> None:
    store = held_store()
    service = await managed(store)
    tested, _ = await service.test_key("acme", "new-key")
    await service.replace(form(replace(HELD, base_url="https://other.test/v1")), by="a")
    for others in ([], [replace(HELD, base_url="https://other.test/v1")]):
        with pytest.raises(GatewayError, match="has changed since its key was tested"):
            await service.replace_key(tested, by="b")
        await service.replace(form(*others), by="a")
    assert store.saves == ["a", "a", "a"]


async def test_a_key_that_cannot_be_read_is_replaced_and_options_are_not() -> None:
    lost = replace(HELD, key="", unreadable_key="sealed", problem="enter the key again")
    service = await managed(MemoryProviderStore(StoredProviders((lost,), {}, 4)))
    assert service.in_use() == []
    await service.replace_key((await service.test_key("acme", "new-key"))[0], by="ann")
    assert [(each.key, each.unreadable_key, each.problem) for each in service.in_use()] == [
        ("new-key", "", "")
    ]
    headers = replace(lost, unreadable_options="sealed")
    service = await managed(MemoryProviderStore(StoredProviders((headers,), {}, 4)))
    with pytest.raises(GatewayError, match="enter the key again"):
        await service.test_key("acme", "new-key")
