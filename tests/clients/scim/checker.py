"""Runs the public checker of SCIM servers: `python -m tests.clients.scim.checker URL TOKEN`.

Prints a JSON list of its results, each [status, title, resource type, reason]. It is a process of its own:
its import takes seconds in a process that has thousands of modules.
"""

import json
import sys
from typing import Any

import httpx2
import scim2_tester
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import filling


def use_addresses() -> None:
    """Make user names that are e-mail addresses, as they must be here: no schema can tell the checker so."""
    generate = filling.generate_random_value

    def generate_address(context: Any, path: Any, **limits: Any) -> Any:
        value = generate(context, path, **limits)
        is_user_name = isinstance(value, str) and str(path).endswith("userName")
        return f"{value}@checker.example.org" if is_user_name else value

    for name, module in list(sys.modules.items()):
        if name.startswith("scim2_tester") and hasattr(module, generate.__name__):
            setattr(module, generate.__name__, generate_address)


def main(url: str, token: str) -> None:
    """Check the server at a base URL."""
    use_addresses()
    headers = {"Authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=url, headers=headers, timeout=30) as http:
        results = scim2_tester.check_server(SyncSCIMClient(http))
    rows = [[one.status.name, one.title, one.resource_type, str(one.reason)] for one in results]
    sys.stdout.write(json.dumps(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
