"""The checker of expressions for JavaScript, as a program that reads them and writes what it found."""

import json
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients.node import NodeMissingError, install

HERE = Path(__file__).parent / "node"
PROCESSES = 2
SECONDS = 280


@dataclass(frozen=True)
class Finding:
    """What is known of one source: `safe`, `vulnerable` or `unknown`, how badly, and a text that shows it."""

    status: str
    complexity: str | None
    attack: str | None


def check(sources: list[tuple[str, str]]) -> list[Finding]:
    """Check sources with their flags; raises NodeMissingError."""
    program = shutil.which("node")
    if program is None:
        raise NodeMissingError("node is not on the PATH")
    command = [program, str(HERE / "main.mjs"), str(install(HERE))]

    def part(number: int) -> list[Any]:
        done = subprocess.run(
            command,
            input=json.dumps(sources[number::PROCESSES]),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
        found: list[Any] = json.loads(done.stdout)
        return found

    with ThreadPoolExecutor(PROCESSES) as pool:
        parts = list(pool.map(part, range(PROCESSES)))
    return [Finding(**parts[place % PROCESSES][place // PROCESSES]) for place in range(len(sources))]
