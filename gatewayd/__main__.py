"""`python -m gatewayd` and the script `gatewayd`: load the command, and run it."""

import gc
from importlib import import_module
from typing import Final

COMMAND: Final = "gatewayd.command"


def main() -> None:
    """Run the daemon and exit with a status of gatewayd(8).

    What its modules make at import lives until the end. The collector would look at all of it again and again
    while they load, which takes a fifth of the start, so it begins when they have.
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
