"""Every command of the manual page against a real daemon: as table and as JSON, good and bad."""

import asyncio
import contextlib
import itertools
import json
import re
import shutil
import signal
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer

from gatewayctl.failures import TABLE
from gatewayctl.main import app
from tests.fakes.daemons.control_plugins import BROKEN, FILTER, SPEC, TOOL
from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.daemons.live_work import surroundings
from tests.fakes.providers.upstream import FakeUpstream
from tests.fakes.storage.migrated import migrated_copy
from tests.fakes.storage.open_webui import household, make_file, make_uploads
from tests.gatewayctl.test_manual import walk

NUMBERS = itertools.count()

ROOT = "root@example.org"
NOBODY = "nobody@example.org"


@dataclass(frozen=True)
class Step:
    """One command line, its exit code and its standard input.

    `{f}` is the form, `{key}` the newest key, `{limit}` the newest limit, `{invitation}` the newest
    invitation, `{linked}` a provider that the administrator is linked to, `{file}` the newest file,
    `{batch}` a new batch, `{docs}` a directory of two documents, `{plugins}` one of sources, `{url}` the
    address of the daemon, `{token}` a file with the last SCIM token, all of which are removed before a step
    that says so, `{image}` a directory. `{webui}` and `{uploads}` are those of Open WebUI. `{chats}`,
    `{chat}`, `{task}` and `{call}` are made for the step. `{here}` is a configuration file of the daemon's
    state, `{idle}` one of another gateway, which is stopped and was migrated once. With `may_warn`, 1 is a
    good code too.
    """

    line: str
    code: int = 0
    stdin: str = ""
    removes_token: bool = False
    may_warn: bool = False

    def arguments(self, daemon: Daemon, form: str, made: Mapping[str, str]) -> list[str]:
        newest = {"key": newest_key, "file": newest_file, "docs": documents, "plugins": plugins}
        newest |= {"limit": newest_limit}
        newest |= {
            "invitation": newest_invitation,
            "linked": linked_provider,
            "batch": new_batch,
            "node": dead_node,
        }
        found = {name: find(daemon) for name, find in newest.items() if f"{{{name}}}" in self.line}
        names = {"f": form, "root": ROOT, "nobody": NOBODY, "url": daemon.base_url}
        names["image"] = str(daemon.state / "image")
        names["backups"] = str(daemon.state / "backups")
        names["webui"], names["uploads"] = foreign(daemon.state)
        noun = self.line.partition(" ")[0]
        names["here"], names["idle"] = configured(daemon.state), idle_gateway(daemon, noun)
        return self.line.format(**names, **found, **made, token=token_file(daemon)).split()


def token_file(daemon: Daemon) -> Path:
    return daemon.state / "token-of-the-provider"


def remove_tokens(daemon: Daemon) -> None:
    with contextlib.closing(sqlite3.connect(daemon.state / "gatewayd.db")) as database, database:
        database.execute("DELETE FROM scim_tokens")


def configured(state: Path) -> str:
    """Return a configuration file with this state."""
    path = state / "gatewayd.toml"
    path.write_text(f'data_dir = "{state}"\nplugins_dir = "{state}/plugins.d"\n')
    return str(path)


def foreign(state: Path) -> tuple[str, str]:
    """Return a database of Open WebUI and its uploads."""
    path = state / "webui" / "webui.db"
    if not path.exists():
        make_file(path, household())
    return str(path), str(make_uploads(path.parent / "uploads"))


def idle_gateway(daemon: Daemon, noun: str) -> str:
    """Return the configuration of a stopped gateway, which the commands of one noun change."""
    state = daemon.state / f"idle-{noun}"
    if not state.exists():
        state.mkdir()
        copy = migrated_copy(state)
        shutil.copy(copy, f"{copy}.before-0016_batches")
    return configured(state)


def newest_key(daemon: Daemon) -> str:
    return daemon.run_ctl("key", "list", "-o", "name").stdout.split()[-1]


def newest_limit(daemon: Daemon) -> str:
    return daemon.run_ctl("limit", "list", "-o", "name").stdout.split()[-1]


def newest_invitation(daemon: Daemon) -> str:
    return daemon.run_ctl("invitation", "list", "-o", "name").stdout.split()[-1]


def linked_provider(daemon: Daemon) -> str:
    """Link the administrator to a provider, as a sign-in there would, and return its name."""
    with contextlib.closing(sqlite3.connect(daemon.state / "gatewayd.db")) as database, database:
        database.execute(
            "INSERT INTO user_identities"
            " (user_id, provider, issuer, subject, provisioning_id, email, id_token, refresh_token,"
            " linked_at, used_at) SELECT id, 'acme', 'https://acme.example', 's', '', email, '', '', 1, 1"
            " FROM users WHERE email = ?",
            (ROOT,),
        )
    return "acme"


def new_batch(daemon: Daemon) -> str:
    """Store a batch of the administrator, whose requests another daemon has, and return its id."""
    batch_id = f"batch_{next(NUMBERS)}"
    with contextlib.closing(sqlite3.connect(daemon.state / "gatewayd.db")) as database, database:
        database.execute(
            "INSERT INTO batches (id, user_id, dialect, endpoint, status, input_file_id, total, completed,"
            " failed, metadata, errors, created_at, expires_at) SELECT ?, id, 'openai', '/v1/embeddings',"
            " 'in_progress', 'file-0', 3, 1, 1, '{}', '[]', 1, 4000000000 FROM users WHERE email = ?",
            (batch_id, ROOT),
        )
    return batch_id


def dead_node(daemon: Daemon) -> str:
    """Store a node that died long ago, unless there is one, and return its name."""
    with contextlib.closing(sqlite3.connect(daemon.state / "gatewayd.db")) as database, database:
        database.execute(
            "INSERT OR IGNORE INTO nodes (id, name, version, migration, address, configuration, secrets,"
            " plugins, is_draining, started_at, until)"
            " VALUES ('n1', 'web-1', '', '', '', '', '', '', 0, 1, 1)"
        )
    return "web-1"


def newest_file(daemon: Daemon) -> str:
    return daemon.run_ctl("file", "list", "-o", "name").stdout.split()[0]


def documents(daemon: Daemon) -> str:
    """Return a directory of two documents."""
    folder = daemon.state / "docs"
    folder.mkdir(exist_ok=True)
    (folder / "a.md").write_text("tar keeps many files in one")
    (folder / "b.txt").write_text("gzip makes files smaller")
    return str(folder)


def plugins(daemon: Daemon) -> str:
    """Return a directory with a filter, a tool, a source that does not load, and what a server offers."""
    folder = daemon.state / "sources"
    folder.mkdir(exist_ok=True)
    for name, content in (("loud", FILTER), ("weather", TOOL), ("broken", BROKEN)):
        (folder / f"{name}.py").write_text(content)
    (folder / "maps.json").write_text(json.dumps(SPEC))
    return str(folder)


TOKEN = re.compile(r"\b\w{64}\b")

# Each script stands alone, so that they run in any order. The first words of a line are the command.
SCRIPTS: dict[str, list[Step]] = {
    "setup": [
        Step("setup --email x@example.org --name X", 6),
        Step("setup --email x@example.org", 2),
    ],
    "log": [
        Step("log level"),
        Step("log level gatewayd.http debug"),
        Step("log level gatewayd.http default"),
        Step("log level gatewayd.http loud", 1),
        Step("log level gatewayd.http", 2),
    ],
    "metrics": [Step("metrics"), Step("metrics --bogus", 2)],
    "health": [Step("health"), Step("health --bogus", 2)],
    "service": [
        Step("service install --prefix {image} --yes -o {f}"),
        Step("service install --prefix {image} -o {f}", 2),
        Step("service uninstall --prefix {image} --yes -o {f}"),
        Step("service uninstall --prefix {image} -o {f}", 2),
    ],
    "audit": [
        Step("audit tail -n 5"),
        Step("audit tail -n 0", 2),
        Step("audit search --who root --since 1h"),
        Step("audit search --since never", 2),
        Step("audit export --since 1h"),
        Step("audit export --until never", 2),
        Step("audit verify"),
        Step("audit verify --checkpoints /dev/null", 2),
    ],
    "state": [
        Step("state export -o {f}"),
        Step("state export --table people", 1),
        Step("state diff - -o {f}", stdin="format = 1"),
        Step("state diff -", 1, stdin="format = 2"),
        Step("state apply - --dry-run -o {f}", stdin="format = 1\n[groups.declared]\n"),
        Step("state apply - --yes -o {f}", stdin="format = 1\n[groups.declared]\n"),
        Step("state apply - --plan 0 -o {f}", 6, stdin="format = 1\n[groups.other]\n"),
    ],
    "node": [
        Step("node list"),
        Step("node list --bogus", 2),
        Step("node drain {node} --dry-run"),
        Step("node drain {node}"),
        Step("node drain nobody", 5),
        Step("node remove {node} --yes"),
        Step("node remove nobody --yes", 5),
    ],
    "doctor": [Step("doctor", may_warn=True), Step("doctor --bogus", 2)],
    "gc": [Step("gc --dry-run"), Step("gc --older-than 1h"), Step("gc --older-than never", 2)],
    "database": [
        Step("database check"),
        Step("database check --timeout 0", 2),
        Step("database status --config {here}"),
        Step("database status --config /none", 1),
        Step("database plan --config {here}"),
        Step("database plan --bogus", 2),
        Step("database migrate --config {idle}"),
        Step("database migrate --config {here}", 6),
        Step("database rollback --config {idle} --yes"),
        Step("database rollback --config {idle}", 2),
        Step("database copy --config {idle} --to sqlite:///x.db --yes", 1),
    ],
    "import": [
        Step("import open-webui --database {webui} --config {idle} --dry-run"),
        Step("import open-webui --database {webui} --uploads {uploads} --config {idle}"),
        Step("import open-webui --database {webui} --config {here}", 6),
        Step("import open-webui --database /none/webui.db --config {idle}", 5),
    ],
    "secret": [
        Step("secret rotate --config {here} --yes"),
        Step("secret rotate --config {idle} --yes", 5),
        Step("secret rotate-provider openai --key-file - --dry-run", stdin="hush"),
        Step("secret rotate-provider openai --key-file - --yes", 6, stdin="hush"),
        Step("secret rotate-provider {f}-none --key-file - --yes", 5, stdin="hush"),
    ],
    "backup": [
        Step("backup create --config {here}"),
        Step("backup create --config {here} --passphrase-file -", 1, stdin="short"),
        Step("backup list --config {here}"),
        Step("backup list --bogus", 2),
        Step("backup verify --config {here}"),
        Step("backup verify none --config {here}", 5),
        Step("backup restore latest --directory {backups} --config {idle} --replace --yes"),
        Step("backup restore latest --config {here} --yes", 6),
        Step("backup prune --config {here} --keep-daily 7"),
        Step("backup prune --config {here}", 1),
    ],
    "chat": [
        Step("chat m hello"),
        Step("chat run m - --system brief --temperature 0.1 --max-tokens 5", stdin="hello"),
        Step("chat no-such-model hello", 5),
        Step("chat run m hello --user {nobody}", 5),
        Step("chat --resume none", 5),
        Step("chat m hello --resume none", 2),
        Step("chat import {chats} --user {root}"),
        Step("chat import {chats} --user {nobody}", 5),
        Step("chat list --user {root} --search heron"),
        Step("chat list --user {nobody}", 5),
        Step("chat show {chat} --tree"),
        Step("chat show none", 5),
        Step("chat export {chat}"),
        Step("chat export --all --user {root} --to {chats}.{f}"),
        Step("chat export none", 5),
        Step("chat export", 2),
        Step("chat remove {chat} --yes"),
        Step("chat remove none --yes", 5),
    ],
    "task": [
        Step("task list --user {root}"),
        Step("task list --chat none", 5),
        Step("task stop {task}"),
        Step("task stop --chat {chat}"),
        Step("task stop none", 5),
    ],
    "batch": [
        Step("batch list --user {root}"),
        Step("batch list --user {nobody}", 5),
        Step("batch show {batch}"),
        Step("batch show none", 5),
        Step("batch cancel {batch}"),
        Step("batch cancel none", 5),
    ],
    "event": [
        Step("event follow --user {root} --count 1"),
        Step("event follow --all --count 1"),
        Step("event follow --user {nobody}", 5),
        Step("event calls"),
        Step("event calls --user {nobody}", 5),
        Step("event answer {call} --yes"),
        Step("event answer none --yes", 5),
        Step("event answer none --yes --no", 2),
    ],
    "user": [
        Step("user list"),
        Step("user list --limit 0", 2),
        Step("user create --email {f}-a@example.org --name A --generate"),
        Step("user create --email {f}-a@example.org", 6),
        Step("user create --email {f}-b@example.org --password-file -", stdin="correct horse"),
        Step("user show {f}-a@example.org"),
        Step("user show {nobody}", 5),
        Step("user ensure --email {f}-a@example.org --role admin"),
        Step("user ensure --email nonsense", 1),
        Step("user change {f}-a@example.org --name AA --username {f}-aa --dry-run"),
        Step("user change {f}-a@example.org", 2),
        Step("user change {f}-a@example.org --email {root}", 6),
        Step("user password {f}-a@example.org --generate"),
        Step("user password {f}-a@example.org --password-file - ", 2, stdin=""),
        Step("user deactivate {f}-a@example.org"),
        Step("user deactivate {nobody}", 5),
        Step("user activate {f}-a@example.org"),
        Step("user activate {nobody}", 5),
        Step("user link {f}-a@example.org --external-id {f}-1 --oauth-subject {f}-s"),
        Step("user link {root} --external-id {f}-1", 6),
        Step("user link {root}", 2),
        Step("user unlink {f}-a@example.org --oauth-subject"),
        Step("user unlink {nobody}", 5),
        Step("user invite {f}-i@example.org --role user"),
        Step("user invite {root}", 6),
        Step("user sign-in-link {f}-a@example.org"),
        Step("user sign-in-link {nobody}", 5),
        Step("user sessions {f}-a@example.org"),
        Step("user sessions {nobody}", 5),
        Step("user end-sessions {f}-a@example.org"),
        Step("user end-sessions {nobody}", 5),
        Step("user identities {root}"),
        Step("user identities {nobody}", 5),
        Step("user remove-identity {root} {linked}"),
        Step("user remove-identity {root} none", 5),
        Step("user remove {f}-a@example.org", 2),
        Step("user remove {f}-a@example.org --yes"),
        Step("user remove {f}-a@example.org --yes", 5),
        Step("user create --email {f}-e@example.org"),
        Step("user export {f}-e@example.org --to {chats}.{f}-e.zip"),
        Step("user export {f}-e@example.org --to {chats}.{f}-e.rar", 2),
        Step("user export {nobody} --to {chats}.{f}-n.tar", 5),
        Step("user erase {f}-e@example.org --dry-run"),
        Step("user erase {f}-e@example.org", 2),
        Step("user erase {f}-e@example.org --yes"),
        Step("user erase {f}-e@example.org --yes", 5),
        Step("user erase {root} --dry-run", 6),
    ],
    "invitation": [
        Step("user invite {f}-j@example.org"),
        Step("invitation list"),
        Step("invitation list --bogus", 2),
        Step("invitation revoke {invitation} --yes"),
        Step("invitation revoke none --yes", 5),
    ],
    "group": [
        Step("group list --user {root}"),
        Step("group list --user {nobody}", 5),
        Step("group create {f}-g --allow features.api_keys"),
        Step("group create {f}-G", 6),
        Step("group show {f}-g"),
        Step("group show {f}-none", 5),
        Step("group ensure {f}-g --description text"),
        Step("group ensure {f}-g --allow features.nonsense", 1),
        Step("group change {f}-g --name {f}-h"),
        Step("group change {f}-h --name api-users", 6),
        Step("group add-member {f}-h {root}"),
        Step("group add-member {f}-h {nobody}", 5),
        Step("group members {f}-h"),
        Step("group members {f}-g", 5),
        Step("group remove-member {f}-h {root} --source scim"),
        Step("group remove-member {f}-h {root}"),
        Step("group remove-member {f}-g {root}", 5),
        Step("group link {f}-h --external-id {f}-g"),
        Step("group link api-users --external-id {f}-g", 6),
        Step("group unlink {f}-h --dry-run"),
        Step("group unlink {f}-h"),
        Step("group unlink {f}-g", 5),
        Step("group remove {f}-h --yes"),
        Step("group remove {f}-h --yes", 5),
    ],
    "permission": [
        Step("group create {f}-p"),
        Step("permission list"),
        Step("permission list --group {f}-none", 5),
        Step("permission show chat.delete"),
        Step("permission show chat.none", 5),
        Step("permission set chat.delete=true workspace.models=false"),
        Step("permission set features.api_keys=true --group {f}-p"),
        Step("permission set features.api_key=true", 1),
        Step("permission reset features.api_keys --group {f}-p"),
        Step("permission reset chat.delete --dry-run"),
        Step("permission reset chat.nonsense", 1),
        Step("permission set workspace.tools_import=true"),
        Step("permission audit"),
        Step("permission audit --group none", 2),
        Step("permission reset workspace.tools_import"),
        Step("permission explain {root}"),
        Step("permission explain {nobody}", 5),
    ],
    "key": [
        Step("key list"),
        Step("key list --user {nobody}", 5),
        Step("key create {root} {f}-dry --dry-run"),
        Step("key create {root} {f}-key --expires-in 90d"),
        Step("key create {root} {f}-KEY", 6),
        Step("key revoke {key} --yes"),
        Step("key revoke 00000000-0000-0000-0000-000000000000 --yes", 5),
        Step("user create --email {f}-k@example.org"),
        Step("key create {f}-k@example.org laptop", 4),
        Step("key why {f}-k@example.org"),
        Step("key why {nobody}", 5),
    ],
    "usage": [
        Step("usage report --by user --by model,day --since 2026-01-01 --user {root}"),
        Step("usage report --by day --plot"),
        Step("usage report --by group --group none", 5),
        Step("usage report --by odd", 2),
        Step("usage report --since 2026-13-01", 1),
        Step("usage export --format csv"),
        Step("usage export --format xml", 2),
    ],
    "top": [Step("top --once --by user"), Step("top -o json"), Step("top --by odd", 2)],
    "limit": [
        Step("limit set --default --model {f}-m --parallel 3 --dry-run"),
        Step("limit set --default --model {f}-m --parallel 3 --budget 10usd/month --budget 5tokens/day"),
        Step("limit set --user {root} --tokens-per-minute 1000000 --warn-at 80"),
        Step("limit set --user {nobody} --parallel 1", 5),
        Step("limit set --group staff --each-member --parallel 1", 5),
        Step("limit set --key none --parallel 1", 5),
        Step("limit set --all --budget 10eur/month", 1),
        Step("limit set --group staff --storage 10G", 5),
        Step("limit set --user {root} --storage 100G"),
        Step("limit set --all --default --parallel 1", 2),
        Step("limit set --all", 2),
        Step("limit list"),
        Step("limit list --bogus", 2),
        Step("limit show {limit} --user {root}"),
        Step("limit show none", 5),
        Step("limit remove {limit} --yes"),
        Step("limit remove none --yes", 5),
    ],
    "model": [
        Step("model list"),
        Step("model list --refresh --user {root}"),
        Step("model list --user {nobody}", 5),
        Step("model show m"),
        Step("model show no/such:model", 5),
        Step("model publish m --dry-run"),
        Step("model publish m"),
        Step("model publish no/such:model", 5),
        Step("model grant m --group api-users --user {root}"),
        Step("model grant m", 2),
        Step("model revoke-access m --group api-users --user {root}"),
        Step("model revoke-access m --user {nobody}", 5),
        Step("model create {f}-desk --base m --system brief --param temperature=0.1"),
        Step("model create {f}-desk --base m", 6),
        Step("model create {f}-other --base m --tool none", 5),
        Step("model show {f}-desk"),
        Step("model update m --family gpt-5.2"),
        Step("model update no/such:model --family x", 5),
        Step("model update m", 2),
        Step("model remove {f}-desk", 2),
        Step("model remove {f}-desk --yes"),
        Step("model remove {f}-desk --yes", 5),
    ],
    "function": [
        Step("function check {plugins}/loud.py"),
        Step("function check {plugins}/absent.py", 2),
        Step("function install {plugins}/loud.py --id {f}_loud --enable --dry-run"),
        Step("function install {plugins}/loud.py --id {f}_loud"),
        Step("function install {plugins}/loud.py --id {f}_loud --name Loud"),
        Step("function install {plugins}/broken.py", 1),
        Step("function install {plugins}/weather.py", 1),
        Step("function list --kind filter"),
        Step("function list --kind tool", 2),
        Step("function show {f}_loud --source"),
        Step("function show none", 5),
        Step("function enable {f}_loud --global"),
        Step("function enable none", 5),
        Step("function valves set {f}_loud mark=x api_key=@-", stdin="hush"),
        Step("function valves set {f}_loud marks=x", 1),
        Step("function valves set {f}_loud api_key=hush", 2),
        Step("function valves get {f}_loud"),
        Step("function valves get none", 5),
        Step("function valves unset {f}_loud mark"),
        Step("function valves unset none mark", 5),
        Step("function disable {f}_loud"),
        Step("function disable none", 5),
        Step("function reload"),
        Step("function reload --bogus", 2),
        Step("function remove {f}_loud", 2),
        Step("function remove {f}_loud --yes"),
        Step("function remove {f}_loud --yes", 5),
    ],
    "tool-server": [
        Step("tool-server add {f}-maps --url http://127.0.0.1:9 --spec {plugins}/maps.json --dry-run"),
        Step("tool-server add {f}-maps --url http://127.0.0.1:9 --spec {plugins}/maps.json"),
        Step("tool-server add {f}-maps --url http://127.0.0.1:9", 6),
        Step("tool-server add {f}-gone --url http://127.0.0.1:9 --key-file -", stdin="hush"),
        Step("tool-server list"),
        Step("tool-server list --bogus", 2),
        Step("tool-server show {f}-maps"),
        Step("tool-server show none", 5),
        Step("tool-server check {f}-maps"),
        Step("tool-server check {f}-gone", 1),
        Step("tool-server grant {f}-maps --group api-users"),
        Step("tool-server grant {f}-maps", 2),
        Step("tool-server revoke-access {f}-maps --group api-users"),
        Step("tool-server revoke-access none --everyone", 5),
        Step("tool-server remove {f}-gone --yes"),
        Step("tool-server remove {f}-maps --yes --dry-run"),
        Step("tool-server remove {f}-maps --yes"),
        Step("tool-server remove {f}-maps --yes", 5),
    ],
    "tool": [
        Step("tool check {plugins}/weather.py"),
        Step("tool check {plugins}/absent.py", 2),
        Step("tool install {plugins}/weather.py --id {f}_weather --user {root}"),
        Step("tool install {plugins}/loud.py", 1),
        Step("tool list"),
        Step("tool list --bogus", 2),
        Step("tool show {f}_weather"),
        Step("tool show none", 5),
        Step("tool grant {f}_weather --everyone"),
        Step("tool grant {f}_weather", 2),
        Step("tool revoke-access {f}_weather --everyone"),
        Step("tool revoke-access none --everyone", 5),
        Step("tool disable {f}_weather"),
        Step("tool disable none", 5),
        Step("tool enable {f}_weather"),
        Step("tool enable none", 5),
        Step("tool valves set {f}_weather unit=C"),
        Step("tool valves set {f}_weather units=C", 1),
        Step("tool valves get {f}_weather --schema"),
        Step("tool valves get none", 5),
        Step("tool valves unset {f}_weather unit"),
        Step("tool valves unset none unit", 5),
        Step("tool reload"),
        Step("tool reload --bogus", 2),
        Step("tool remove {f}_weather --yes"),
        Step("tool remove {f}_weather --yes", 5),
    ],
    "scim-token": [
        Step("scim-token create --dry-run", removes_token=True),
        Step("scim-token rotate", 6),
        Step("scim-token create"),
        Step("scim-token create", 6),
        Step("scim-token retire", 6),
        Step("scim-token rotate"),
        Step("scim-token retire --dry-run"),
        Step("scim-token retire"),
        Step("scim-token show"),
        Step("scim-token show --bogus", 2),
    ],
    "scim": [
        Step("scim-token create", removes_token=True),
        Step("scim check {url} --token-file {token}"),
        Step("scim check {url}/api/v1/scim/v2/ --token-file {token} --write"),
        Step("scim check chat.example.org --token-file {token}", 2),
        Step("scim check {url} --token-file {token}-none", 2),
        Step("scim status"),
        Step("scim status --bogus", 2),
        Step("scim log --limit 20"),
        Step("scim log --limit 0", 2),
    ],
    "file": [
        Step("file add {docs}/a.md --wait"),
        Step("file add {docs}/absent", 2),
        Step("file list --query *.md"),
        Step("file list --limit 0", 2),
        Step("file show {file}"),
        Step("file show none", 5),
        Step("file text {file}"),
        Step("file text none", 5),
        Step("file queue"),
        Step("file queue --bogus", 2),
        Step("file retry {file} --wait"),
        Step("file retry", 2),
        Step("file give {file} --to {root}"),
        Step("file give {file} --to {nobody}", 5),
        Step("file delete {file}", 2),
        Step("file delete {file} --yes"),
        Step("file delete none --yes", 5),
    ],
    "collection": [
        Step("collection create {f}-c --reader *"),
        Step("collection create {f}-d --user {nobody}", 5),
        Step("collection list --query {f}"),
        Step("collection list --limit 0", 2),
        Step("collection show {f}-c"),
        Step("collection show none", 5),
        Step("collection change {f}-c --description text"),
        Step("collection change {f}-c", 2),
        Step("file add {docs}/a.md"),
        Step("collection add {f}-c {file} --wait"),
        Step("collection add none {file}", 5),
        Step("collection files {f}-c"),
        Step("collection files none", 5),
        Step("collection query {f}-c tar --explain -k 1"),
        Step("collection query none tar", 5),
        Step("collection remove {f}-c {file}"),
        Step("collection remove none {file}", 5),
        Step("collection give {f}-c --to {root}"),
        Step("collection give {f}-c --to {nobody}", 5),
        Step("collection check"),
        Step("collection check none", 5),
        Step("collection reindex --wait"),
        Step("collection reindex --bogus", 2),
        Step("collection delete {f}-c --yes"),
        Step("collection delete {f}-c --yes", 5),
    ],
    "ingest": [
        Step("ingest {docs} --collection {f}-i --delete"),
        Step("ingest {docs} --collection {f}-i --dry-run"),
        Step("ingest {docs}", 2),
        Step("ingest {docs}/absent --collection {f}-i", 2),
    ],
    "setting": [
        Step("setting list"),
        Step("setting list --bogus", 2),
        Step("setting show ENABLE_API_KEYS"),
        Step("setting show ENABLE_NOTHING", 5),
        Step("setting set DEFAULT_USER_ROLE=user RESPONSE_WATERMARK={f}"),
        Step("setting set DEFAULT_USER_ROLE=king", 1),
        Step("setting reset DEFAULT_USER_ROLE RESPONSE_WATERMARK"),
        Step("setting reset ENABLE_NOTHING", 5),
    ],
}


@contextlib.contextmanager
def provider() -> Iterator[FakeUpstream]:
    """Run a provider on a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    fake = FakeUpstream()
    try:
        asyncio.run_coroutine_threadsafe(fake.__aenter__(), loop).result(10)
        yield fake
        asyncio.run_coroutine_threadsafe(fake.__aexit__(None, None, None), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Return a daemon with one model and its first administrator."""
    with provider() as fake:
        sources = {"OPENAI_API_BASE_URLS": fake.openai_url, "OPENAI_API_KEYS": "k"}
        settings = {**sources, "SCIM_ENABLED": "true", "SCIM_AUTH_PROVIDER": "okta"}
        settings["ENABLE_FORWARD_USER_INFO_HEADERS"] = "true"
        with running_daemon(tmp_path_factory.mktemp("s"), **settings) as running:
            made = running.run_ctl("setup", "--email", ROOT, "--name", "Root", "-o", "json")
            assert made.returncode == 0, made.stderr
            assert json.loads(made.stdout)["key"].startswith("sk-")
            yield running


def check(daemon: Daemon, step: Step, form: str) -> None:
    """Run one step and compare everything that is promised about it."""
    if step.removes_token:
        remove_tokens(daemon)
    with surroundings(daemon, ROOT, step.line) as made:
        arguments = step.arguments(daemon, form, made)
        done = daemon.run_ctl(*arguments, "-o", form, input=step.stdin)
    codes = {step.code, 1} if step.may_warn else {step.code}
    assert done.returncode in codes, f"{arguments}: {done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr
    if step.line == "scim-token create" and step.code == 0:
        token_file(daemon).write_text(TOKEN.findall(done.stdout)[0])
    if step.code == 0:
        assert done.stdout.strip() or "list" in arguments
        if form == "json":
            json.loads(done.stdout)
            assert done.stderr == ""
        return
    assert done.stdout == ""
    if form == "json":
        error = json.loads(done.stderr)["error"]
        assert TABLE[error["kind"]].exit_code == step.code
        assert error["message"].startswith(("cannot", "invalid", "no such", "missing", "Model not found"))
    else:
        assert done.stderr.startswith("gatewayctl: ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noun", "form"), [(noun, ("table", "json")[place % 2]) for place, noun in enumerate(SCRIPTS)]
)
def test_live(daemon: Daemon, noun: str, form: str) -> None:
    for step in SCRIPTS[noun]:
        check(daemon, step, form)


def ran(codes_are_good: bool) -> set[str]:
    """Return the commands that the scripts run well, or badly."""
    steps = [step for script in SCRIPTS.values() for step in script if (step.code == 0) is codes_are_good]
    commands = {path for path, _ in walk(typer.main.get_command(app))}
    return {command for command in commands for step in steps if f"{step.line} ".startswith(f"{command} ")}


def test_every_command_runs_well_and_badly() -> None:
    commands = {path for path, _ in walk(typer.main.get_command(app))}
    # The one good run of setup is that of the fixture; copies between engines have their own tests.
    assert ran(True) | {"setup", "database copy"} == commands
    assert ran(False) == commands


@pytest.mark.slow
def test_streams_and_names_are_fit_for_scripts(daemon: Daemon) -> None:
    chunks = daemon.run_ctl("chat", "m", "hello", "-o", "jsonl").stdout.splitlines()
    assert len(chunks) > 1
    assert all(json.loads(chunk)["object"] == "chat.completion.chunk" for chunk in chunks)
    value = daemon.run_ctl("key", "create", ROOT, "script", "-o", "name").stdout.strip()
    status, models = daemon.call("GET", "/api/models", headers={"Authorization": f"Bearer {value}"})
    # Other scripts may have installed a model of their own.
    assert (status, "m" in [model["id"] for model in models["data"]]) == (200, True)


@pytest.mark.slow
def test_a_write_leaves_one_audit_line_without_secrets(daemon: Daemon) -> None:
    daemon.run_ctl(
        "user", "create", "--email", "audit@example.org", "--password-file", "-", input="hunter22 horse"
    )
    daemon.run_ctl("user", "create", "--email", "dry@example.org", "--dry-run")
    log = "".join(daemon.log)
    assert log.count("user create by=") == log.count("gatewayd.audit: user create")
    assert "target=audit@example.org" in log
    assert "target=dry@example.org" not in log
    assert "hunter22" not in log


@pytest.mark.slow
def test_a_token_is_in_force_at_once_and_after_a_reload(daemon: Daemon) -> None:
    def status(token: str) -> int:
        return daemon.call(
            "GET", "/api/v1/scim/v2/ServiceProviderConfig", headers={"Authorization": f"Bearer {token}"}
        )[0]

    remove_tokens(daemon)
    first = daemon.run_ctl("scim-token", "create", "-o", "name").stdout.strip()
    second = daemon.run_ctl("scim-token", "rotate", "-o", "name").stdout.strip()
    assert (status(first), status(second), status("other")) == (200, 200, 401)
    daemon.log.clear()
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_for("reloaded")
    assert (status(first), status(second)) == (200, 200)
    daemon.run_ctl("scim-token", "retire")
    assert (status(first), status(second)) == (401, 200)
    file = daemon.state / "scim-token"
    file.write_text("a b c")
    daemon.process.send_signal(signal.SIGHUP)
    assert "scim-token: cannot use scim_token" in daemon.wait_for("reload refused")
    assert status(second) == 200
    # The database takes over a new token; one that was retired stays so.
    file.write_text(f"{'n' * 40}\n{first}")
    daemon.log.clear()
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_for("reloaded")
    assert (status("n" * 40), status(first), status(second)) == (200, 401, 200)
    file.unlink()
    assert not {first, second} & set("".join(daemon.log).split())


@pytest.mark.slow
def test_a_check_with_a_wrong_token_says_what_to_compare(daemon: Daemon) -> None:
    done = daemon.run_ctl("scim", "check", daemon.base_url, "-o", "json", input="wrong-token")
    assert (done.returncode, done.stderr) == (1, "")
    rows = {row["step"]: row for row in json.loads(done.stdout)}
    assert (rows["reach"]["result"], rows["token"]["result"]) == ("ok", "failed")
    assert "compare it with gatewayctl scim-token show" in rows["token"]["advice"]
    log = json.loads(daemon.run_ctl("scim", "log", "--limit", "1", "-o", "json").stdout)
    assert (log[0]["status"], log[0]["method"]) == (401, "GET")
    status = json.loads(daemon.run_ctl("scim", "status", "-o", "json").stdout)
    assert status["last_refused"]["request_id"] == log[0]["request_id"]
