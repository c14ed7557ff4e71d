"""`python -m gatewayd.offline`: read one order from standard input, run it, and write what came of it."""

import json
import logging
import os
import sys
from typing import Any

from gatewayd.backup.creation import os_errors
from gatewayd.errors import GatewayError
from gatewayd.offline.orders import ORDERS, OfflineOrder
from gatewayd.offline.place import become_owner, read_gateway
from gatewayd.settings import process_environment


def main() -> int:
    """Run one order and return the exit status."""
    os.umask(0o077)
    logging.basicConfig(level=logging.ERROR, stream=sys.stderr)
    order = OfflineOrder.model_validate_json(sys.stdin.buffer.read())
    try:
        result = _run(order)
    except GatewayError as error:
        return _fail(error.kind.value, error.full_message, error.param)
    except KeyboardInterrupt:
        return _fail("stopped", "stopped: what was begun is undone, or is begun anew by the next run", None)
    _tell({"result": result})
    return 0


def _run(order: OfflineOrder) -> Any:
    # Such as those of an ordinary user, who may not look at the state.
    with os_errors("work on the state of the gateway"):
        gateway = read_gateway(order.config, order.directory, process_environment())
        with order.opened(gateway.place) as given:
            become_owner(gateway.settings.data_dir)
            return ORDERS[order.verb](gateway, order, given, lambda words: _tell({"progress": words}))


def _fail(kind: str, message: str, param: str | None) -> int:
    _tell({"failure": {"kind": kind, "message": message, "param": param}})
    return 1


def _tell(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
