"""What `gatewayctl collection give` does with files of removed accounts."""

import json
from pathlib import Path

from tests.fakes.daemons.control_socket import Control, Ctl


async def test_files_of_nobody_are_told_and_given(
    ctl: Ctl, control: Control, owner: None, tmp_path: Path
) -> None:
    await ctl("user", "create", "--email", "ann@example.org", "--generate")
    await ctl("collection", "create", "left", "--user", "ann@example.org")
    for number, user in enumerate(("ann@example.org", "ann@example.org", "boss@example.org")):
        path = tmp_path / f"{number}.txt"
        path.write_text(f"text {number}")
        added = await ctl("file", "add", str(path), "--user", user, "--collection", "left")
        assert added.code == 0, added.err
    await ctl("user", "remove", "ann@example.org", "--yes")
    give = ("collection", "give", "left", "--to", "boss@example.org")
    told = "2 files in it still have no owner: --with-files gives them, too\n"
    assert (await ctl(*give)).err == told
    dry = await ctl(*give, "--with-files", "--dry-run")
    assert dry.err == "dry run: gave 2 files that had no owner\n"
    assert (await ctl(*give)).err == told
    given = await ctl(*give, "--with-files")
    assert (given.code, given.out) == (0, "unchanged collection left\n")
    assert given.err == "gave 2 files that had no owner\n"
    assert (await ctl(*give)).err == ""
    files = json.loads((await ctl("file", "list", "-o", "json")).out)
    assert [file["user"] for file in files] == ["boss@example.org"] * 3
