"""The command line: `python -m benchmarks drain|receive|latency|growth [--json]`."""

from __future__ import annotations

import argparse
import importlib
import sys

from benchmarks.report import Failed, print_result

COMMANDS = {
    "drain": ("benchmarks.drain.command", "how many pending deliveries a second are settled"),
    "receive": ("benchmarks.receive.command", "how many durable 2xx a second are given"),
    "latency": ("benchmarks.latency", "how long from the commit of a receipt to the start of its handler"),
    "growth": ("benchmarks.growth.command", "how the cost grows with what there is"),
}
RUNS = 5


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure hookledger beside others, in one run on one machine.",
        epilog="The server is that of DATABASE_URL, if it is set, else an embedded one. Progress is on stderr.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module, what) in COMMANDS.items():
        command = commands.add_parser(
            name, help=what, description=what, formatter_class=argparse.ArgumentDefaultsHelpFormatter
        )
        command.add_argument("--json", action="store_true", help="print one JSON object, and nothing else")
        command.add_argument("--runs", type=int, default=RUNS, help="measurements of each, taken in turn")
        importlib.import_module(module).add_arguments(command)
    return parser


def main() -> int:
    """Run the command, print its result, and return the status of the process."""
    options = make_parser().parse_args()
    try:
        result = importlib.import_module(COMMANDS[options.command][0]).run(options)
    except Failed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print_result(result, as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
