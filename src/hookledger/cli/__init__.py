"""The command line: `hookledger --help`.

app       the commands, and how the process ends      options   options that several commands share
load      "hooks:inbox" to an Inbox                   database  engines, and what to do about their errors
errors    one sentence and an exit status             output    tables, JSON and plain text
captured  a request in files                          given     a source from options
db, worker, status, send, sources, verify, dev, demo  one command or group each
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line with the arguments of the process, and end the process."""
    from hookledger.cli.app import run

    sys.exit(run(sys.argv[1:]))
