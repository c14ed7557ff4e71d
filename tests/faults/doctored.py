"""What the doctor finds on a machine with systemd: how each finding is provoked there."""

import json
from dataclasses import dataclass
from typing import Any, Final

from tests.faults.debian import Machine

SOCKETS: Final = "gatewayd.socket gatewayd-control.socket gatewayd"
DROP_INS: Final = "/etc/systemd/system/gatewayd.service.d"
PYTHON: Final = "/usr/lib/gatewayd/bin/python"
STATE: Final = "/var/lib/gatewayd"
DATABASE: Final = f"{STATE}/gatewayd.db"
RESTARTED: Final = "systemctl daemon-reload && systemctl restart gatewayd"
STOPPED: Final = f"systemctl stop {SOCKETS}"
BACKED_UP: Final = "gatewayctl backup create"
CLOCK: Final = "/run/clock"


def written(path: str, *lines: str) -> str:
    """Return the script that writes a file; the shell expands what stands in it."""
    text = "\n".join(lines)
    return f"mkdir -p $(dirname {path})\ncat > {path} <<END\n{text}\nEND"


def drop_in(*directives: str) -> str:
    """Return the script that adds directives to the unit, and restarts it."""
    return f"{written(f'{DROP_INS}/mine.conf', '[Service]', *directives)}\n{RESTARTED}"


def sql(statement: str) -> str:
    """Return the script that changes the SQLite database from outside."""
    code = "import sqlite3, sys; d = sqlite3.connect(sys.argv[1], timeout=30); d.executescript(sys.argv[2])"
    return f"{PYTHON} -c '{code}' {DATABASE} \"{statement}\""


LARGE_FILE: Final = (
    "INSERT INTO files (id, user_id, name, name_key, digest, checksum, status, data, size, characters,"
    " chunks, updated_at, created_at)"
    " VALUES ('large', 'u', 'n', 'n', 'd', 'c', 'completed', '{}', 9000000, 0, 0, 1, 1)"
)
ZEROED: Final = (
    f"page=$({PYTHON} -c \"import sqlite3; d = sqlite3.connect('{DATABASE}');"
    " print(d.execute(\\\"SELECT rootpage FROM sqlite_schema WHERE name = 'chats'\\\").fetchone()[0] - 1);"
    " d.execute('PRAGMA wal_checkpoint(TRUNCATE)')\")\n"
    f"dd if=/dev/zero of={DATABASE} bs=4096 count=1 seek=$page conv=notrunc"
)
ORPHAN: Final = f"{STATE}/files/01/orphan01"
SMALL_DISK: Final = f"""
{STOPPED}
cp -a {STATE} /run/state
mount -t tmpfs -o size=310m,mode=700 tmpfs {STATE}
cp -a /run/state/. {STATE}
rm -r /run/state
systemctl start gatewayd
install -d -o gatewayd -g gatewayd -m 700 {STATE}/files {STATE}/files/01
head -c 120M /dev/zero > {ORPHAN}
chown gatewayd:gatewayd {ORPHAN}
chmod 600 {ORPHAN}
touch -d '3 days ago' {ORPHAN}"""
LARGE_DISK: Final = f"""
{STOPPED}
cp -a {STATE} /run/state
umount {STATE}
cp -a /run/state/. {STATE}
rm -r /run/state
systemctl start gatewayd"""
INSTALL: Final = "DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends"
# A real time service would set the clock of this machine: this one sets the daemon's alone.
SLOW_CLOCK: Final = "\n".join(
    (
        f"{INSTALL} systemd-timesyncd libfaketime >/dev/null 2>&1",
        "timedatectl set-ntp false",
        "gatewayctl user create --email ada@example.org --generate",
        f"echo -2h > {CLOCK}",
        f"chmod 644 {CLOCK}",
        written(
            "/etc/systemd/system/systemd-timesyncd.service.d/near.conf",
            "[Unit]\nConditionVirtualization=\nConditionCapability=",
            "[Service]\nType=simple\nWatchdogSec=0\nUser=root\nExecStart=",
            f"ExecStart=/bin/sh -c 'echo +0 > {CLOCK}; exec sleep infinity'\nReadWritePaths=/run",
        ),
        drop_in(
            "Environment=LD_PRELOAD=$(dpkg -L libfaketime | grep libfaketime.so.1$)",
            f"Environment=FAKETIME_TIMESTAMP_FILE={CLOCK} FAKETIME_NO_CACHE=1 FAKETIME_DISABLE_SHM=1",
            "Environment=FAKETIME_DONT_FAKE_MONOTONIC=1",
        ),
    )
)
POSTGRES: Final = "\n".join(
    (
        f"{INSTALL} postgresql >/dev/null 2>&1",
        "systemctl start postgresql",
        "runuser -u postgres -- psql -qc \"CREATE ROLE gatewayd LOGIN PASSWORD 'p'\"",
        "runuser -u postgres -- psql -qc 'CREATE DATABASE gatewayd OWNER gatewayd'",
        drop_in("Environment=DATABASE_URL=postgresql://gatewayd:p@localhost/gatewayd"),
        "systemctl stop postgresql",
        "for n in $(seq 60); do gatewayctl health -o name | grep -q pass || break; sleep 0.5; done",
    )
)


@dataclass(frozen=True)
class Provoked:
    """A finding, what provokes it, and what brings the machine back after it was mended."""

    code: str
    script: str
    after: str = "true"
    command: str = ""
    """What is a part of the command that mends it."""


UNDONE: Final = f"rm -rf {DROP_INS}; {RESTARTED}"
LOOSE: Final = "sed s/NoNewPrivileges=yes// /lib/systemd/system/gatewayd.service > "
ROWS: Final = (
    Provoked("daemon-stopped", STOPPED),
    Provoked("descriptors-low", drop_in("LimitNOFILE=1024"), UNDONE),
    Provoked("unit-open", drop_in("PrivateTmp=no"), UNDONE, f"rm {DROP_INS}/mine.conf"),
    Provoked(
        "unit-open",
        f"{LOOSE} /etc/systemd/system/gatewayd.service\n{RESTARTED}",
        command="rm /etc/systemd/system/gatewayd.service",
    ),
    Provoked("limit-small", f"{drop_in('Environment=RAG_FILE_MAX_SIZE=1')}\n{sql(LARGE_FILE)}", UNDONE),
    Provoked("file-lost", sql(LARGE_FILE.replace("INSERT", "INSERT OR REPLACE"))),
    Provoked("secret-short", drop_in(f"Environment=WEBUI_SECRET_KEY={'é' * 16}"), UNDONE),
    Provoked("clock-behind", SLOW_CLOCK, f"timedatectl set-ntp false; {UNDONE}"),
    Provoked("disk-full", SMALL_DISK, LARGE_DISK),
    Provoked("database-damaged", f"{BACKED_UP}; {STOPPED}; {ZEROED}\nsystemctl start gatewayd"),
    Provoked(
        "schema-broken", f"{BACKED_UP}; {STOPPED}\n{sql('DELETE FROM tortoise_migrations WHERE id = 2')}"
    ),
    Provoked("database-unreachable", f"{STOPPED}; rm {DATABASE}*"),
    Provoked("database-unreachable", POSTGRES, UNDONE, "systemctl start postgresql"),
    Provoked("provider-none", "true", command="gatewayd --fetch-model && systemctl"),
    Provoked("provider-none", drop_in("Environment=ENABLE_BUILTIN_MODEL=false"), UNDONE),
)


def findings(machine: Machine) -> dict[str, dict[str, Any]]:
    """Return what the doctor finds on the machine, by code."""
    told = machine.sh("gatewayctl doctor -o json 2>/dev/null || true", folder="/")
    return {each["code"]: each for each in json.loads(told)}
