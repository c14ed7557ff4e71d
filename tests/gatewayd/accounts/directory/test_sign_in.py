"""Tests for gatewayd.accounts.directory.sign_in."""

import pytest

from gatewayd.accounts.directory.records import DirectoryEntry
from gatewayd.accounts.directory.sign_in import DirectorySignIn
from gatewayd.accounts.identity.records import GroupRules, IdentityRules
from gatewayd.accounts.records import NewGroup, Role, UserChange
from gatewayd.accounts.sign_in import SignInClient
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.accounts.services import Accounts

HERE = SignInClient("192.0.2.1")
ADA = DirectoryEntry("uuid-1", "cn=ada,dc=x", "Ada", "Ada@Example.org", ("research", "unknown"))


class FakeDirectory:
    """Knows one person, with the password `secret`."""

    def __init__(self) -> None:
        self.entry = ADA
        self.asked: list[tuple[str, str]] = []
        self.failure: GatewayError | None = None

    async def authenticate(self, name: str, password: str) -> DirectoryEntry | None:
        self.asked.append((name, password))
        if self.failure is not None:
            raise self.failure
        return self.entry if (name.lower(), password) == ("ada", "secret") else None


@pytest.fixture
async def accounts() -> Accounts:
    made = Accounts()
    await made.add_user("admin", Role.ADMIN, password="secret")
    await made.runtime.set({"DEFAULT_USER_ROLE": "user"}, by="test")
    return made


@pytest.fixture
def directory() -> FakeDirectory:
    return FakeDirectory()


def service(accounts: Accounts, directory: FakeDirectory, **rules: object) -> DirectorySignIn:
    given = {"sign_up": True, "trust_email": True, "groups": GroupRules(is_managed=True), **rules}
    made = IdentityRules(**given)  # type: ignore[arg-type]
    return DirectorySignIn(directory, accounts.external.resolve, accounts.sign_in_guard, made)


async def failure(
    sign_in: DirectorySignIn, name: str = "ada", password: str = "wrong", client: SignInClient = HERE
) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await sign_in.sign_in(name, password, client)
    return caught.value


async def test_a_person_keeps_the_account_when_name_and_address_change(
    accounts: Accounts, directory: FakeDirectory
) -> None:
    await accounts.groups.ensure(NewGroup("research"))
    sign_in = service(accounts, directory)
    first = (await sign_in.sign_in(" ada ", "secret", HERE)).user
    assert (first.email, first.name, first.role) == ("ada@example.org", "Ada", Role.USER)
    assert directory.asked == [("ada", "secret")]
    assert [group.name for group in await accounts.groups.list(first.id)] == ["research"]
    directory.entry = DirectoryEntry("uuid-1", "cn=other,dc=x", "Ada L", "ada.l@example.org")
    again = (await sign_in.sign_in("ADA", "secret", HERE)).user
    assert again.id == first.id
    assert await accounts.groups.list(first.id) == [], "an entry without the attribute is in no group"


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("ada", ""),
        ("ada", "  "),
        ("ada", "a\x00b"),
        ("ada", "x" * 1025),
        ("ada", "é" * 513),
        ("ada", "\ud800"),
        ("", "secret"),
        ("a\x00", "secret"),
        ("\ud800", "secret"),
        ("a" * 256, "secret"),
        ("\u0301" * 100_000, "secret"),
    ],
)
async def test_what_no_directory_has_is_refused_without_asking_it(
    accounts: Accounts, directory: FakeDirectory, name: str, password: str
) -> None:
    error = await failure(service(accounts, directory), name, password)
    assert (error.kind, error.code) == (ErrorKind.INVALID_REQUEST, "invalid_credentials")
    assert directory.asked == []


async def test_the_address_of_another_account_is_not_taken_over(
    accounts: Accounts, directory: FakeDirectory
) -> None:
    await accounts.add_user("ada", password="other")
    assert (await failure(service(accounts, directory), password="secret")).code == "email_taken"
    joined = await service(accounts, directory, merge_by_email=True).sign_in("ada", "secret", HERE)
    assert joined.user.email == "ada@example.org"
    directory.entry = DirectoryEntry("uuid-2", "cn=x", "X", "admin@example.org")
    merging = service(accounts, directory, merge_by_email=True)
    assert (await failure(merging, password="secret")).code == "email_taken"


async def test_tries_are_limited_before_the_directory_is_asked(
    accounts: Accounts, directory: FakeDirectory
) -> None:
    sign_in = service(accounts, directory)
    cookie = sign_in.issue_device_cookie("Ada")
    for _ in range(10):
        assert (await failure(sign_in)).kind is ErrorKind.INVALID_REQUEST
    asked = len(directory.asked)
    limited = await failure(sign_in, password="secret")
    assert (limited.kind, bool(limited.retry_after)) == (ErrorKind.RATE_LIMITED, True)
    assert len(directory.asked) == asked
    known = SignInClient(HERE.peer, cookie)
    assert (await sign_in.sign_in("ada", "secret", known)).user.email == "ada@example.org"
    assert (await accounts.sign_in.sign_in("admin@example.org", "secret", HERE)).role is Role.ADMIN


async def test_tries_of_both_kinds_share_the_limit_of_an_address(
    accounts: Accounts, directory: FakeDirectory
) -> None:
    sign_in = service(accounts, directory)
    for number in range(100):
        await failure(sign_in, f"nobody{number}")
    with pytest.raises(GatewayError) as caught:
        await accounts.sign_in.sign_in("other@example.org", "x", HERE)
    assert caught.value.kind is ErrorKind.RATE_LIMITED


async def test_an_absent_directory_counts_for_nobody(accounts: Accounts, directory: FakeDirectory) -> None:
    sign_in = service(accounts, directory)
    directory.failure = GatewayError(ErrorKind.UNAVAILABLE, "cannot sign in now")
    for _ in range(20):
        assert (await failure(sign_in, password="secret")).kind is ErrorKind.UNAVAILABLE
    directory.failure = None
    assert await sign_in.sign_in("ada", "secret", HERE)


async def test_a_deactivated_account_is_refused(accounts: Accounts, directory: FakeDirectory) -> None:
    sign_in = service(accounts, directory)
    user = (await sign_in.sign_in("ada", "secret", HERE)).user
    await accounts.users.change(user.id, UserChange(active=False), None)
    assert (await failure(sign_in, password="secret")).code == "deactivated"


async def test_an_account_of_scim_with_the_id_of_the_entry_is_the_same(
    accounts: Accounts, directory: FakeDirectory
) -> None:
    made = await accounts.add_user("other", scim={"ldap": {"external_id": "uuid-1"}})
    assert (await service(accounts, directory).sign_in("ada", "secret", HERE)).user.id == made.id
