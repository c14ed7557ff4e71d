"""The whole import: from files and servers of both schemas, to both engines, and again."""

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest

from gatewayd.accounts.passwords import Passwords
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.extras import PackageExtra
from gatewayd.ingest.records import FileStatus
from gatewayd.offline.imports import accounts as accounts_import
from gatewayd.plugins.records import PluginFamily
from gatewayd.storage.chats import TortoiseChats
from gatewayd.storage.collections import TortoiseCollections
from gatewayd.storage.engine.lock import lock_folder
from gatewayd.storage.files import TortoiseFiles
from gatewayd.storage.groups import TortoiseGroups
from gatewayd.storage.jobs import TortoiseJobs
from gatewayd.storage.keys import TortoiseKeys
from gatewayd.storage.messages import TortoiseMessages
from gatewayd.storage.models import TortoiseModels
from gatewayd.storage.stored_settings import TortoiseValues
from gatewayd.storage.users import TortoiseUsers
from tests.fakes.daemons.daemon import free_port
from tests.fakes.storage.migrated import migrated_copy
from tests.fakes.storage.open_webui import (
    KEY,
    NEW,
    OLD,
    PASSWORD,
    UPLOAD,
    household,
    make_file,
    make_server,
    user,
)
from tests.fakes.storage.postgres import Postgres
from tests.gatewayd.offline.imports.conftest import Importing, into, numbers

SAME = {
    "group": 1,
    "user": 2,
    "key": 1,
    "collection": 1,
    "file": 1,
    "folder": 1,
    "chat": 1,
    "shared chat": 1,
    "function": 1,
    "tool": 1,
    "user valves": 1,
    "model": 1,
    "provider": 1,
    "setting": 3,
}
IMPORTED = {OLD: SAME, NEW: {**SAME, "directory": 1, "tool server": 1}}


def files_of(folder: Path) -> dict[str, str]:
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def check_report(report: dict[str, Any], schema: str, *, is_again: bool = False) -> None:
    found = numbers(report)
    counts = {kind: each[1 if is_again else 0] for kind, each in found.items() if each[0] or each[1]}
    assert counts == IMPORTED[schema]
    assert {kind: each[2] for kind, each in found.items() if each[2]} == {"setting": 1, "prompt": 1}
    assert report["changed"] == []


async def check_state(importing: Importing, schema: str) -> None:
    async with importing.open():
        ada, bob = await TortoiseUsers().find("u-ada"), await TortoiseUsers().find_by_email("bob@example.org")
        assert ada is not None
        assert bob is not None
        assert (ada.email, ada.role.value, bob.id) == ("ada@example.org", "admin", "u-bob")
        assert bob.settings == {"ui": {}}
        passwords = Passwords()
        assert await passwords.verify(await TortoiseUsers().find_password_hash("u-bob"), PASSWORD)
        passwords.close()
        [group] = await TortoiseGroups().list(user_id="u-bob")
        assert (group.id, group.permissions) == ("g-1", {"features": {"api_keys": True}})
        [key] = await TortoiseKeys().list(user_id="u-bob")
        assert await TortoiseKeys().find_by_digest(hashlib.sha256(KEY.encode()).hexdigest()) == key
        assert key.prefix == KEY[:8]
        await check_documents(schema)
        await check_chat(schema)
        [model] = await TortoiseModels().list()
        assert (model.id, model.base_model_id) == ("helper", "m")
        # Without a list the older versions show a model to everybody, the newer ones to its owner.
        assert [each.principal_id for each in model.grants] == (["*"] if schema == OLD else [])
        values = await TortoiseValues().load()
        assert values["DEFAULT_GROUP_ID"] == "g-1"
        assert values["ENABLE_SIGNUP"] is False
        assert values["USER_PERMISSIONS"]["chat"]["delete"] is False


async def check_documents(schema: str) -> None:
    [collection], _ = await TortoiseCollections().list()
    [grant] = collection.grants
    assert (collection.name, grant.principal_type, grant.principal_id) == ("Handbook", "group", "g-1")
    [file], _ = await TortoiseFiles().list()
    assert (file.id, file.name, file.size, file.status) == (
        "file-1",
        "rules.txt",
        len(UPLOAD[1]),
        FileStatus.PENDING,
    )
    assert file.data == {"a": 1}
    assert await TortoiseJobs().find("file-1") is not None
    link = (await TortoiseCollections().find_links("k-1", ["file-1"]))["file-1"]
    assert link.directory_id == ("d-1" if schema == NEW else None)


async def check_chat(schema: str) -> None:
    chat = await TortoiseChats().find("c-1")
    assert chat is not None
    assert (chat.title, chat.pinned, chat.folder_id, chat.share_id) == ("Trees", True, "f-1", "s-1")
    assert chat.tags == ("my_tag",)
    tree = {each.id: each.parent_id for each in await TortoiseMessages().list("c-1")}
    expected = {"m1": None, "m2": "m1", "m3": "m1"} | ({"m4": "m3"} if schema == NEW else {})
    assert tree == expected
    assert chat.current_id == "m3"
    shared = await TortoiseChats().find_shared("s-1")
    assert shared is not None
    assert list(shared.document["chat"]["history"]["messages"]) == ["m1", "m2", "m3"]


async def blob_key(importing: Importing, file_id: str) -> str:
    async with importing.open():
        found = await TortoiseFiles().find(file_id)
    assert found is not None
    return found.blob_key


@pytest.mark.parametrize("schema", [OLD, NEW])
def test_a_file_is_imported_once(importing: Importing, schema: str) -> None:
    check_report(importing.rows(household(schema), schema), schema)
    asyncio.run(check_state(importing, schema))
    # The bytes have the key of their row, which is not its id.
    [blob] = [each for each in (importing.gateway.place.data_dir / "files").rglob("*") if each.is_file()]
    assert blob.name == asyncio.run(blob_key(importing, "file-1")) != "file-1"
    assert blob.read_bytes() == UPLOAD[1]
    assert "importing chats" in importing.progress
    before = files_of(importing.gateway.place.data_dir)
    again = importing.rows(household(schema), schema)
    check_report(again, schema, is_again=True)
    assert again["has_changed"] is False
    after = files_of(importing.gateway.place.data_dir)
    locks = {name for name in after if name.endswith(".lock")}
    assert {name: after[name] for name in after.keys() - locks} == {
        name: before[name] for name in before.keys() - locks
    }


@pytest.mark.real("PostgreSQL")
@pytest.mark.parametrize("schema", [OLD, NEW])
def test_a_server_is_imported_into_a_server(tmp_path: Path, postgres: Postgres, schema: str) -> None:
    (tmp_path / "state").mkdir()
    target = {"DATA_DIR": str(tmp_path / "state"), "DATABASE_URL": postgres.migrated_database()}
    importing = into(tmp_path, target)
    url = asyncio.run(make_server(postgres.create_database(), household(schema), schema))
    check_report(importing.database(url), schema)
    asyncio.run(check_state(importing, schema))
    check_report(importing.database(url), schema, is_again=True)


@pytest.mark.parametrize("schema", [OLD, NEW])
def test_a_dry_run_reports_the_same_and_writes_nothing(importing: Importing, schema: str) -> None:
    data_dir = importing.gateway.place.data_dir
    before = files_of(data_dir)
    with lock_folder(data_dir):
        report = importing.rows(household(schema), schema, dry_run=True)
    assert {name for name in files_of(data_dir) if not name.endswith(("-wal", "-shm", ".lock"))} == {
        name for name in before if not name.endswith(".lock")
    }
    assert files_of(data_dir)[str(data_dir / "gatewayd.db")] == before[str(data_dir / "gatewayd.db")]
    assert (report["dry_run"], report["has_changed"]) == (True, False)
    check_report(report, schema)
    real = importing.rows(household(schema), schema)
    assert [real[part] for part in ("kinds", "left_out", "changed")] == [
        report[part] for part in ("kinds", "left_out", "changed")
    ]
    assert real["has_changed"] is True


def test_a_dry_run_leaves_the_store_of_files_and_the_copies_of_a_daemon_alone(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    environ = {
        "DATA_DIR": str(state),
        "DATABASE_URL": f"sqlite:///{migrated_copy(state)}",
        "FILE_STORE": "s3://bucket/prefix",
        "FILE_STORE_ENDPOINT": f"http://127.0.0.1:{free_port()}",
        "FILE_STORE_ACCESS_KEY": "a",
        "FILE_STORE_SECRET_KEY": "s",
    }
    lent = state / "copies" / "lent"
    lent.parent.mkdir()
    lent.write_bytes(b"bytes that a running daemon reads")
    report = into(tmp_path, environ).rows(household(), dry_run=True)
    assert numbers(report)["file"] == (1, 0, 0)
    assert lent.exists()


def test_a_running_daemon_keeps_its_state(importing: Importing) -> None:
    with lock_folder(importing.gateway.place.data_dir), pytest.raises(GatewayError) as caught:
        importing.rows(household())
    assert caught.value.kind is ErrorKind.CONFLICT


def test_a_gateway_without_a_database_is_told_how_to_make_one(importing: Importing) -> None:
    path = importing.gateway.place.location.path
    assert path is not None
    path.unlink()
    for dry_run in (True, False):
        with pytest.raises(GatewayError, match="gatewayctl database migrate"):
            importing.rows(household(), dry_run=dry_run)
    assert not path.exists()


@pytest.mark.parametrize(
    "address", ["", "/none/webui.db", "mysql://u:p@h/d", "postgresql://127.0.0.1:9/none"]
)
def test_what_cannot_be_opened_is_an_error(importing: Importing, address: str) -> None:
    with pytest.raises(GatewayError, match="cannot"):
        importing.database(address)


def test_without_bcrypt_nothing_is_imported(importing: Importing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts_import, "is_installed", lambda extra: extra is not PackageExtra.OPEN_WEBUI)
    with pytest.raises(GatewayError, match=r"gatewayd\[open-webui\]"):
        importing.rows(household())
    rows = household()
    for each in rows["auth"]:
        each["password"] = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$YWFhYWFhYWFhYWFhYWFhYQ"
    assert numbers(importing.rows(rows))["user"] == (2, 0, 0)


def test_an_address_of_sqlite_is_a_file(importing: Importing, tmp_path: Path) -> None:
    path = make_file(tmp_path / "x.db", {"user": [user("u-1", "a@b.c")]})
    importing.uploads = None
    assert numbers(importing.database(f"sqlite:///{path}"))["user"] == (1, 0, 0)
    assert PluginFamily.TOOL.value == "tool"
