"""Entry point of `python -m gatewayd` and of the script `gatewayd`."""

import gc
from importlib import import_module
from typing import Final

COMMAND: Final = "gatewayd.command"


def main() -> None:
    """Run the daemon and exit with a status of gatewayd(8).

    Objects that are created at import live until the end. The garbage collector would scan them again and
    again while the modules load, a fifth of the start time, so it starts after them.
    """
    gc.disable()
    try:
        command = import_module(COMMAND)
    finally:
        gc.freeze()
        gc.enable()
    command.main()


if __name__ == "__main__":
    main()
