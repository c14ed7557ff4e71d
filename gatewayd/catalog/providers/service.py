"""Management of providers by administrators, who see those of the settings and change all others."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace

from gatewayd import ids
from gatewayd.catalog.providers.forms import MAX_NAME_CHARACTERS, enable_name, named
from gatewayd.catalog.providers.interfaces import ProviderStore, ProviderTester
from gatewayd.catalog.providers.options import MASK, NO_OPTIONS
from gatewayd.catalog.providers.records import (
    SETTINGS_PREFIX,
    ConfiguredProviders,
    ConfiguredSwitch,
    ManagedProvider,
    ProviderFamily,
    ProviderForm,
    ProviderOffer,
    StoredProviders,
)
from gatewayd.errors import ErrorKind, GatewayError, invalid, not_found
from gatewayd.urls import split_url

log = logging.getLogger(__name__)

NAME_TAKEN = "the settings have a provider of this name"


class ManagedProviders:
    """The providers of the settings and of the database.

    Providers of the settings cannot be changed. The switch of a family follows the runtime settings: a stored
    value overrides that of the settings, and without `persistent` an explicit value of the settings cannot be
    changed. `on_change` is called after each change, to use the new providers. `exclusive` returns the block
    that keeps other processes from a change, in which this one knows what they have stored.
    """

    def __init__(
        self,
        store: ProviderStore,
        tester: ProviderTester,
        *,
        persistent: bool,
        clock: ids.Clock = ids.now,
        exclusive: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    ) -> None:
        self._store = store
        self._tester = tester
        self._persistent = persistent
        self._clock = clock
        self._stored = StoredProviders()
        self._configured = ConfiguredProviders()
        self._changing = asyncio.Lock()
        self._exclusive = exclusive
        self.on_change: Callable[[], None] = lambda: None

    async def load(self) -> None:
        """Read the stored providers: at start, and after a change by another process."""
        stored = await self._store.load()
        self._stored = replace(stored, providers=tuple(map(self._usable, stored.providers)))
        for provider in self._stored.providers:
            if provider.problem:
                log.warning(
                    "provider not used", extra={"provider": provider.name, "reason": provider.problem}
                )

    def configure(self, configured: ConfiguredProviders) -> None:
        """Apply the providers of the settings; stored ones stay."""
        self._configured = configured

    def show(self, family: ProviderFamily) -> ProviderForm:
        """Return the providers of a family, those of the settings first, with their keys."""
        found = (*self._configured.providers, *self._stored.providers)
        own = tuple(each for each in found if each.family is family)
        return ProviderForm(family, own, self.is_enabled(family), self._stored.revision)

    def problems(self) -> Mapping[str, str]:
        """Return why providers of the database are not used, by their ids."""
        taken = {each.name for each in self._configured.providers}
        clashes = {each.id: NAME_TAKEN for each in self._stored.providers if each.name in taken}
        return clashes | {each.id: each.problem for each in self._stored.providers if each.problem}

    def in_use(self) -> Sequence[ManagedProvider]:
        """Return the providers of the database that models come from."""
        unused = self.problems()
        return [
            each
            for each in self._stored.providers
            if each.is_active and self.is_enabled(each.family) and each.id not in unused
        ]

    def is_enabled(self, family: ProviderFamily) -> bool:
        """Return the switch of a family that is in force."""
        switch = self._switch(family)
        stored = self._stored.enabled.get(family)
        return switch.value if stored is None or self._is_fixed(switch) else stored

    async def replace(self, form: ProviderForm, *, by: str) -> ProviderForm:
        """Replace the providers of one family in the database as one change, and use them at once.

        Raises invalid_request that names the field; conflict for a changed provider or switch of the
        settings, and for a form that was made from another `revision`.
        """
        async with self._changing:
            async with self._exclusive():
                stored = self._replaced(form)
                await self._store.save(stored, at=self._clock(), by=by)
            self._stored = stored
            self.on_change()
        return self.show(form.family)

    def _replaced(self, form: ProviderForm) -> StoredProviders:
        """Return what is stored after a change."""
        if form.revision is not None and form.revision != self._stored.revision:
            raise _conflict("the providers have changed since they were read", "revision")
        providers = self._checked(form)
        enabled = self._changed_switch(form)
        others = [each for each in self._stored.providers if each.family is not form.family]
        _check_names([*self._configured.providers, *others, *providers])
        return StoredProviders((*others, *providers), enabled, self._stored.revision + 1)

    async def test(self, provider: ManagedProvider) -> ProviderOffer:
        """Test a provider, stored or not; MASK stands for the key of the provider with this id or address."""
        provider = self._complete(provider, self.show(provider.family).providers)
        if provider.problem:
            raise invalid(f"cannot test provider {provider.name!r}: {provider.problem}", param="key")
        self._tester.validate(provider)
        return await self._tester.test(provider)

    async def test_key(
        self, name: str, key: str, *, is_change: bool = False
    ) -> tuple[ManagedProvider, ProviderOffer]:
        """Return a provider, of the settings or the database, with another key that it has not refused.

        The offer has the reason if the test does not show that the key works. With `is_change` the key is to
        be stored: for a provider of the settings this raises conflict at once.
        Raises not_found, invalid_request for a key that no provider can have, and the errors of the test.
        """
        found = (*self._configured.providers, *self._stored.providers)
        provider = next((each for each in found if each.name == name), None)
        if provider is None:
            raise not_found("provider", name)
        if is_change:
            _check_stored(provider)
        problem = provider.problem if provider.unreadable_options else ""
        if problem:
            raise invalid(f"cannot replace the key of provider {name!r}: {problem}", param="name")
        changed = replace(provider, key=key, unreadable_key="", problem="")
        self._tester.validate(changed)
        # Its further keys could answer in place of a bad one.
        asked = replace(changed, options=replace(changed.options, keys=()))
        offer = await self._tester.test(asked)
        return changed, replace(offer, key_doubt=await self._tester.find_key_doubt(asked))

    async def replace_key(self, tested: ManagedProvider, *, by: str) -> None:
        """Store the key of a provider of the database that was tested with it, and use it at once.

        Requests under way end with the former key. Raises conflict for a provider of the settings, and for
        one that has changed since.
        """
        _check_stored(tested)
        async with self._changing:
            async with self._exclusive():
                stored = self._with_key(tested)
                await self._store.save(stored, at=self._clock(), by=by)
            self._stored = stored
            self.on_change()

    def _with_key(self, tested: ManagedProvider) -> StoredProviders:
        """Return what is stored, with the key of a provider whose address is the one that was tested."""
        held = {each.id: each for each in self._stored.providers}
        provider = held.get(tested.id)
        if provider is None or provider.base_url != tested.base_url:
            raise _conflict("the provider has changed since its key was tested", "key")
        held[provider.id] = replace(provider, key=tested.key, unreadable_key="", problem=tested.problem)
        return replace(self._stored, providers=tuple(held.values()), revision=self._stored.revision + 1)

    def _usable(self, provider: ManagedProvider) -> ManagedProvider:
        """Return a stored provider with its problem, if this version does not accept it."""
        try:
            self._tester.validate(provider)
        except GatewayError as error:
            return replace(provider, problem=provider.problem or error.message)
        return provider

    def _checked(self, form: ProviderForm) -> Sequence[ManagedProvider]:
        """Return the providers to store: complete, valid, without those of the settings."""
        locked = {each.id: each for each in self._configured.providers if each.family is form.family}
        held = [each for each in self._stored.providers if each.family is form.family]
        found = []
        for sent in form.providers:
            fixed = locked.get(sent.id) if sent.id else _same_address(sent, locked.values())
            if fixed is not None:
                _check_unchanged(sent, fixed)
                locked.pop(fixed.id)
                continue
            if sent.id.startswith(SETTINGS_PREFIX):
                raise invalid("cannot accept id: the settings have no such provider", param="id")
            complete = self._complete(sent, held)
            self._tester.validate(complete)
            known = next((each for each in held if each.id == complete.id), None)
            # Each stored entry answers to one entry of the form, so that no two get one id.
            held = [each for each in held if each is not known]
            found.append(complete if known else replace(complete, id=ids.new_id()))
        return found

    def _complete(self, sent: ManagedProvider, held: Iterable[ManagedProvider]) -> ManagedProvider:
        """Return a provider with the id, name and key of the one that it stands for."""
        held = list(held)
        match = next((each for each in held if sent.id and each.id == sent.id), None)
        if match is None and not sent.id:
            match = _same_address(sent, held)
        name = sent.name or (match.name if match else "")
        provider = named(replace(sent, name=name, id=match.id if match else ""))
        is_same_host = match is not None and _host(match.base_url) == _host(sent.base_url)
        provider = _with_options(provider, match if is_same_host else None)
        if sent.key != MASK:
            return provider
        # A stored key is never sent to another host than the one that it was entered for.
        if match is None or not match.has_key or not is_same_host:
            raise invalid(
                f"cannot use the key of provider {provider.name!r}: enter it again, as the address is new",
                param="key",
            )
        return replace(provider, key=match.key, unreadable_key=match.unreadable_key, problem=match.problem)

    def _changed_switch(self, form: ProviderForm) -> Mapping[ProviderFamily, bool]:
        stored = dict(self._stored.enabled)
        if form.enabled is None or form.enabled == self.is_enabled(form.family):
            return stored
        switch = self._switch(form.family)
        if self._is_fixed(switch):
            refusal = f"{switch.origin} sets it, and ENABLE_PERSISTENT_CONFIG is off"
            raise GatewayError(ErrorKind.CONFLICT, f"cannot set {switch.name}: {refusal}", param=switch.name)
        return stored | {form.family: form.enabled}

    def _switch(self, family: ProviderFamily) -> ConfiguredSwitch:
        return self._configured.switches.get(family, ConfiguredSwitch(enable_name(family)))

    def _is_fixed(self, switch: ConfiguredSwitch) -> bool:
        return switch.explicit and not self._persistent


def _same_address(sent: ManagedProvider, held: Iterable[ManagedProvider]) -> ManagedProvider | None:
    """Return the provider that an entry without an id stands for; one with a key of its own is new."""
    if sent.id:
        return None
    for each in held:
        if each.base_url == sent.base_url and sent.key in {"", MASK if each.has_key else ""}:
            return each
    return None


def _with_options(provider: ManagedProvider, held: ManagedProvider | None) -> ManagedProvider:
    """Return a provider with the options that its form left as they are or masked, of the same host."""
    sent = provider.options
    if held is None and sent.has_masks:
        raise invalid(
            f"cannot use the secrets of provider {provider.name!r}: enter them again, as the address is new",
            param="keys" if MASK in (sent.keys or ()) else "headers",
        )
    unreadable = held.unreadable_options if held is not None and sent == NO_OPTIONS else ""
    options = sent.completed(held.options if held is not None else NO_OPTIONS)
    problem = held.problem if held is not None and unreadable else provider.problem
    return replace(provider, options=options, unreadable_options=unreadable, problem=problem)


def _check_unchanged(sent: ManagedProvider, fixed: ManagedProvider) -> None:
    is_same = sent.key in {"", MASK if fixed.has_key else ""} and sent.base_url == fixed.base_url
    if sent.id:
        is_same = is_same and (sent.name or fixed.name, sent.models, sent.is_active) == (
            fixed.name,
            fixed.models,
            fixed.is_active,
        )
    if not is_same:
        raise _conflict(f"provider {fixed.name!r} comes from {fixed.origin}", "base_url")


def _check_names(providers: Sequence[ManagedProvider]) -> None:
    counts = Counter(each.name for each in providers)
    for each in providers:
        if not each.name or len(each.name) > MAX_NAME_CHARACTERS:
            raise invalid(f"cannot accept name: expected 1 to {MAX_NAME_CHARACTERS} characters", param="name")
        if counts[each.name] > 1 and not each.origin:
            raise _conflict(f"another provider has the name {each.name!r}", "name")


def _host(url: str) -> tuple[str, str]:
    parts = split_url(url)
    return parts.scheme, parts.netloc


def _check_stored(provider: ManagedProvider) -> None:
    """Raise conflict for a provider of the settings, whose key is changed there."""
    if provider.origin:
        refusal = f"it comes from {provider.origin}: write the key there or into its key_file, and reload"
        sentence = f"cannot replace the key of provider {provider.name!r}: {refusal}"
        raise GatewayError(ErrorKind.CONFLICT, sentence)


def _conflict(reason: str, param: str) -> GatewayError:
    return GatewayError(ErrorKind.CONFLICT, f"cannot store the providers: {reason}", param=param)
