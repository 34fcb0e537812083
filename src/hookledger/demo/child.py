"""What runs in a child process of the demo: a command of hookledger as it stands, or the receiver.

    python -m hookledger.demo.child PARENT receive starlette 8000
    python -m hookledger.demo.child PARENT worker hookledger.demo.hooks:inbox

It ends when its parent does, however that ends.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
"""https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html"""


def end_with(parent: int) -> None:
    """Have this process killed at the moment its parent ends.

    Args:
        parent: the process id that the parent must have; another one means that it is gone already.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(1)


def main() -> None:
    """Run what the arguments say."""
    _, parent, *arguments = sys.argv
    end_with(int(parent))
    if arguments[0] == "receive":
        from hookledger.demo.framework import Framework
        from hookledger.demo.receiver import serve

        serve(Framework(arguments[1]), int(arguments[2]), on_fork=end_with)
        return
    sys.argv = ["hookledger", *arguments]
    from hookledger.cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
