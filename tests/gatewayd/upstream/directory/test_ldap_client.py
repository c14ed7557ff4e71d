"""Tests for gatewayd.upstream.directory.ldap_client, against a real server."""

import asyncio
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewayd.accounts.directory.records import DirectoryEntry
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.directory import ldap_client as module
from gatewayd.upstream.directory.ldap_client import (
    LdapAttempt,
    LdapDirectory,
    LdapOptions,
    LdapSecurity,
    check_filter,
)
from tests.fakes.directory.slapd import APP, APP_PASSWORD, BASE, PASSWORD, PEOPLE, STAFF, Slapd

# LDAP messages (RFC 4511): the answer to StartTLS that the server does not know it.
NO_STARTTLS = bytes.fromhex("300c02010178070a010204000400")
# The answer that TLS may begin, after which nothing comes.
STARTTLS = bytes.fromhex("300c02010178070a010004000400")


@pytest.fixture
def options(slapd: Slapd) -> LdapOptions:
    return LdapOptions(
        host="127.0.0.1",
        port=slapd.port,
        search_base=BASE,
        ca_file=slapd.ca_file,
        app_dn=APP,
        app_password=APP_PASSWORD,
    )


async def ask(options: LdapOptions, name: str = "ada", password: str = PASSWORD) -> DirectoryEntry | None:
    directory = LdapDirectory(options, failure_seconds=0)
    try:
        return await directory.authenticate(name, password)
    finally:
        directory.close()


async def failure(options: LdapOptions, caplog: pytest.LogCaptureFixture) -> str:
    with pytest.raises(GatewayError) as caught:
        await ask(options)
    error = caught.value
    assert (error.kind, error.code, error.retry_after) == (ErrorKind.UNAVAILABLE, "unreachable", 5)
    assert error.message == "cannot sign in now: the directory cannot be asked"
    return caplog.records[-1].getMessage().removeprefix("the directory cannot be asked: ")


@pytest.mark.parametrize("security", [LdapSecurity.STARTTLS, LdapSecurity.LDAPS])
async def test_a_person_with_their_password(
    slapd: Slapd, options: LdapOptions, security: LdapSecurity
) -> None:
    port = slapd.port if security is LdapSecurity.STARTTLS else slapd.ldaps_port
    found = await ask(replace(options, port=port, security=security))
    assert found is not None
    assert (found.dn, found.name, found.email) == (f"cn=ada,{PEOPLE}", "Ada Löve", "ada@example.org")
    assert set(found.groups) == {"research, theory", "staff"}
    assert str(uuid.UUID(found.id)) == found.id


async def test_the_id_stays_when_the_entry_moves(slapd: Slapd, options: LdapOptions) -> None:
    dn = slapd.add_person("mover")
    before = await ask(options, "mover")
    slapd.move(dn, "moved")
    after = await ask(options, "mover")
    assert before is not None
    assert after is not None
    assert (before.id, before.groups) == (after.id, ())
    assert before.dn != after.dn


@pytest.mark.parametrize(
    "name",
    [
        "nobody",
        "*",
        "ad*",
        "ada)(uid=*",
        "*)(|(uid=*",
        "ada\\",
        "\\2a",
        "ada\x00",
        "ada)",
        "\udcff",
        "a" * 255,
    ],
)
async def test_unknown_and_forged_names_are_refused(options: LdapOptions, name: str) -> None:
    assert await ask(options, name) is None


@pytest.mark.parametrize("password", ["wrong", " ", PASSWORD.upper(), "p" * 1024])
async def test_wrong_passwords_are_refused(options: LdapOptions, password: str) -> None:
    assert await ask(options, "ada", password) is None


async def test_two_entries_of_one_name_are_refused(slapd: Slapd, options: LdapOptions) -> None:
    for number, parent in enumerate((PEOPLE, STAFF, STAFF)):
        slapd.add_person(f"twin{number}", parent, uid=["twin", f"twin{number}"])
    assert await ask(options, "twin") is None
    assert await ask(replace(options, search_base=PEOPLE), "twin") is not None


async def test_a_filter_chooses_who_may_sign_in(slapd: Slapd, options: LdapOptions) -> None:
    slapd.add_person("guest", STAFF, sn=["guest"])
    narrow = replace(options, search_filter=check_filter("!(sn=guest)"))
    assert await ask(options, "guest") is not None
    assert await ask(narrow, "guest") is None
    assert await ask(narrow, "ada") is not None


async def test_a_reference_to_another_server_is_not_followed(slapd: Slapd, options: LdapOptions) -> None:
    with silent_server() as (port, seen):
        slapd.add(
            f"ou=elsewhere,{BASE}",
            objectClass=["referral", "extensibleObject"],
            ou=["elsewhere"],
            ref=[f"ldap://127.0.0.1:{port}/ou=elsewhere,{BASE}"],
        )
        assert await ask(options, "far") is None
        assert await ask(options, "ada") is not None
    assert seen == []


async def test_a_certificate_must_be_that_of_the_server(
    slapd: Slapd, options: LdapOptions, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = [
        replace(options, ca_file=None),
        replace(options, ca_file=slapd.folder / "other.pem"),
        replace(options, host="127.0.0.2"),
        replace(options, port=slapd.ldaps_port, security=LdapSecurity.LDAPS, ca_file=None),
    ]
    for each in wrong:
        assert await failure(each, caplog) in {
            "TLS could not be negotiated",
            "it cannot be reached, or its certificate is not valid",
        }
    unchecked = replace(options, host="127.0.0.2", ca_file=None, checks_certificate=False)
    assert await ask(unchecked) is not None


async def test_what_the_directory_demands(options: LdapOptions, caplog: pytest.LogCaptureFixture) -> None:
    plain = replace(options, security=LdapSecurity.NONE)
    assert await failure(plain, caplog) == "it demands TLS"
    stranger = replace(options, app_password="wrong")
    assert await failure(stranger, caplog) == "it refuses ldap_app_dn"
    nowhere = replace(options, search_base="dc=nowhere")
    assert await failure(nowhere, caplog) != ""
    assert await failure(replace(options, port=1), caplog) == "it cannot be reached"


async def test_nothing_is_sent_to_a_server_without_tls(
    options: LdapOptions, caplog: pytest.LogCaptureFixture
) -> None:
    with silent_server(NO_STARTTLS) as (port, seen):
        assert await failure(replace(options, port=port), caplog) != ""
    sent = b"".join(seen)
    assert b"1.3.6.1.4.1.1466.20037" in sent
    assert PASSWORD.encode() not in sent
    assert APP_PASSWORD.encode() not in sent


@pytest.mark.parametrize(
    ("security", "reply"),
    [
        (LdapSecurity.STARTTLS, b""),
        (LdapSecurity.STARTTLS, STARTTLS),
        (LdapSecurity.LDAPS, b""),
        (LdapSecurity.NONE, b""),
    ],
)
async def test_a_silent_server_takes_no_longer_than_a_step(
    options: LdapOptions,
    security: LdapSecurity,
    reply: bytes,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(module, "STEP_SECONDS", 0.3)
    monkeypatch.setattr(module, "TOTAL_SECONDS", 0.6)
    began = time.monotonic()
    with silent_server(reply, once=True) as (port, _):
        silent = replace(options, port=port, security=security)
        assert await failure(silent, caplog) != ""
    assert time.monotonic() - began < 2
    while any(thread.name.startswith("ldap") for thread in threading.enumerate()):
        assert time.monotonic() - began < 5
        await asyncio.sleep(0.01)


async def test_many_that_wait_are_refused_and_a_late_answer_is_given_up(
    options: LdapOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TOTAL_SECONDS", 0.05)
    monkeypatch.setattr(module, "MAX_WAITING", 2)
    directory, gate = LdapDirectory(options), threading.Event()
    monkeypatch.setattr(LdapAttempt, "check", lambda *_: gate.wait(5) and None)
    try:
        tries = [directory.authenticate("ada", PASSWORD) for _ in range(3)]
        found = await asyncio.gather(*tries, return_exceptions=True)
        assert [type(each) for each in found] == [GatewayError] * 3
        gate.set()
        async with asyncio.timeout(5):
            while directory._waiting:
                await asyncio.sleep(0.01)
    finally:
        directory.close()


async def test_a_refusal_takes_as_long_for_a_name_that_exists(options: LdapOptions) -> None:
    directory = LdapDirectory(options, failure_seconds=0.3)
    times = []
    for name in ("ada", "nobody"):
        began = time.monotonic()
        assert await directory.authenticate(name, "wrong") is None
        times.append(time.monotonic() - began)
    directory.close()
    assert all(0.3 <= each < 0.6 for each in times), times


async def test_no_descriptor_stays_open(slapd: Slapd, options: LdapOptions) -> None:
    wrong = replace(options, ca_file=slapd.folder / "other.pem")
    secure = replace(options, port=slapd.ldaps_port, security=LdapSecurity.LDAPS)
    each = [options, secure, wrong, replace(secure, ca_file=wrong.ca_file), replace(options, port=1)]
    await asyncio.gather(*(ask(one) for one in each), return_exceptions=True)
    before = len([*Path("/proc/self/fd").iterdir()])
    for _ in range(3):
        for one in each:
            await asyncio.gather(ask(one), return_exceptions=True)
    assert len([*Path("/proc/self/fd").iterdir()]) <= before


def test_ids_and_filters() -> None:
    guid = uuid.UUID("12345678-1234-5678-1234-567812345678")
    assert module._id_of("cn=a,dc=b", {"objectguid": [guid.bytes_le]}) == str(guid)
    assert module._id_of("CN=A, DC=B", {}) == "cn=a,dc=b"
    assert [check_filter(text) for text in ("", " (a=b) ", "a=b")] == ["", "(a=b)", "(a=b)"]
    assert module._first_name(b"cn=a\\, b,dc=c") == "a, b"
    assert module._first_name(b"no dn") == "no dn"
    assert LdapOptions("::1", 389, BASE).address == "ldap://[::1]:389"
    assert APP_PASSWORD not in repr(LdapOptions("h", 1, BASE, app_password=APP_PASSWORD))


@contextmanager
def silent_server(reply: bytes = b"", *, once: bool = False) -> Iterator[tuple[int, list[bytes]]]:
    """Listen, answer each message, or the first one, with the same bytes, and note what comes."""
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve(connection: Any) -> None:
            with connection:
                while data := connection.recv(4096):
                    seen.append(data)
                    if reply and not (once and len(seen) > 1):
                        connection.sendall(reply)

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1], seen
        server.shutdown(socket.SHUT_RDWR)
