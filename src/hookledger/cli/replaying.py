"""What `replay`, `backfill` and `--forget-effects` share: show the plan, ask, run, watch, and tell how it ended."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hookledger.cli.confirm import confirm
from hookledger.cli.ended import advice, ended_in_words, status_of_ended
from hookledger.cli.errors import say
from hookledger.cli.output import counted, print_json
from hookledger.cli.progress import Progress
from hookledger.cli.who import who as name_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from hookledger.inbox import Inbox
    from hookledger.operate.replay import Options, Plan, Replay, Run, Selection
    from hookledger.operate.replay.run import Progress as RunProgress

PANEL = "How it goes"

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan, and change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why; it is recorded.")]
InboxOption = Annotated[
    str | None,
    typer.Option(
        "--inbox",
        envvar="HOOKLEDGER_INBOX",
        metavar="MODULE:INBOX",
        help="Your inbox, as for `worker`; with it the plan knows your handlers.",
    ),
]
Rate = Annotated[
    str | None,
    typer.Option("--rate", metavar="N/s", help="No faster than this: 200/s, 600/min.", rich_help_panel=PANEL),
]
Canary = Annotated[
    int | None,
    typer.Option(
        "--canary", min=0, metavar="N", help="So many first; go on only if all end well.", rich_help_panel=PANEL
    ),
]
MaxFailures = Annotated[
    str | None,
    typer.Option("--max-failures", metavar="N%", help="End if more fail: 5% or 10.", rich_help_panel=PANEL),
]
MostPending = Annotated[
    int | None,
    typer.Option(
        "--most-pending",
        min=0,
        metavar="N",
        help="So many wait for a worker at a time, at the most [200]; 0 queues all at once.",
        rich_help_panel=PANEL,
    ),
]


def options_of(
    rate: str | None,
    canary: int | None,
    max_failures: str | None,
    most_pending: int | None,
    before: Options | None = None,
) -> Options:
    """The options of a run; what is not given stays as it was before, or as usual."""
    from dataclasses import replace

    from hookledger.operate.replay import Options
    from hookledger.operate.replay.options import read_max_failures, read_rate

    given: dict[str, Any] = {}
    if rate is not None:
        given["rate"] = read_rate(rate)
    if canary is not None:
        given["canary"] = canary
    if max_failures is not None:
        given["max_failures"], given["max_failed"] = read_max_failures(max_failures)
    if most_pending is not None:
        given["most_pending"] = most_pending
    return replace(before or Options(), **given)


def plan_of(engine: Engine, schema: str, selection: Selection, inbox: Inbox | None, *, quiet: bool) -> Plan:
    """Make the plan, showing how far it is."""
    from hookledger.operate.replay import make_plan

    with Progress("planning, deliveries looked at", quiet=quiet) as progress:
        return make_plan(engine, schema, selection, inbox=inbox, progress=progress.show)


def in_words(plan: Plan) -> list[str]:
    """The plan as lines for a person."""
    from hookledger.operate.moments import shown_moment

    lines = [
        f"Plan, frozen at {shown_moment(plan.made_at)}; later arrivals (above {plan.until_id}) are not in it:",
        f"  {plan.total:>10,} selected: {plan.dead:,} dead (to be revived), {plan.settled:,} settled",
        f"  {plan.run:>10,} will run" + (f", {plan.uncertain:,} of them unless stale" if plan.uncertain else ""),
        f"  {plan.stale:>10,} will be refused as stale",
        f"  {plan.skipped:>10,} will be skipped: their effects exist",
    ]
    if plan.unhandled:
        lines.append(f"  {plan.unhandled:>10,} have no handler")
    if plan.gone:
        lines.append(f"  {plan.gone:>10,} left alone: their bytes are gone")
    if plan.left_settled != 0:
        lines.append(f"  {_bounded(plan.left_settled):>10} settled ones left alone (--include-settled)")
    if plan.left_pending != 0:
        lines.append(f"  {_bounded(plan.left_pending):>10} pending ones left alone: they run by themselves")
    if not plan.knows_handlers:
        lines.append("  Handlers are not known here; --inbox MODULE:INBOX makes the plan exact.")
    return lines


def _bounded(count: int | None) -> str:
    if count is None:
        return "many"
    return f"{count:,}" if count <= 10_000 else "10,000+"


def carry_out(
    engine: Engine,
    schema: str,
    selection: Selection,
    *,
    inbox: Inbox | None,
    options: Options,
    who: str | None,
    reason: str | None,
    dry_run: bool,
    yes: bool,
    json: bool,
    more: Callable[[], list[dict[str, Any]]] | None = None,
    tell: Callable[[], None] = lambda: None,
    ask: Callable[[Plan], None] | None = None,
) -> None:
    """Plan, ask, run, and end the command with its status.

    Args:
        engine: of the ledger's database.
        schema: where the ledger is.
        selection: the deliveries.
        inbox: if it is known.
        options: of the run.
        who, reason: to be recorded.
        dry_run, yes, json: as given on the command line.
        more: what is known of single deliveries, for --json.
        tell: says it to a person.
        ask: asks in place of the usual question.
    """
    from hookledger.operate.locked import reading
    from hookledger.operate.replay import begin

    with reading(engine, schema) as reader:
        plan = plan_of(reader, schema, selection, inbox, quiet=json)
    if dry_run and json:
        print_json({"plan": plan.as_document(), "deliveries": more() if more else []})
        return
    for line in in_words(plan):
        print(line, flush=True) if dry_run else say(line)
    _tell_pauses(engine, schema, selection)
    tell()
    if dry_run:
        return
    if not plan.total:
        say("nothing to do: no delivery that matches can be replayed")
        if json:
            print_json({"plan": plan.as_document(), "deliveries": more() if more else []})
        return
    if ask is None:
        confirm(f"Make {counted(plan.total, 'delivery', 'deliveries')} pending again", yes=yes)
    else:
        ask(plan)
    replay = begin(engine, schema, selection, plan, who=name_of(who), reason=reason, options=options)
    run_and_tell(engine, schema, replay, json=json)


def _tell_pauses(engine: Engine, schema: str, selection: Selection) -> None:
    """Say what is paused: of that, a replay makes pending what runs only once it is resumed, and a canary waits."""
    from hookledger.operate.locked import reading
    from hookledger.operate.pauses import PauseKind, read_pauses

    with reading(engine, schema) as reader, reader.connect() as connection:
        paused = read_pauses(connection, schema)
    for one in paused:
        if one.kind is PauseKind.HANDLER or selection.filter.source in (None, one.name):
            say(f"note: the {one.kind.value} {one.name} is paused; what is replayed of it waits until it is resumed")


def run_and_tell(engine: Engine, schema: str, replay: Replay, *, json: bool) -> None:
    """Run a replay that was begun or resumed, and end the command with its status."""
    from hookledger.ledger.revision import command
    from hookledger.operate.replay import Run

    how = command(f"replay --resume {replay.id}", schema)
    say(f"replay {replay.id} begins; {command(f'replays stop {replay.id}', schema)} ends it from elsewhere")
    with Progress(f"replay {replay.id}", replay.plan.total, quiet=json) as progress:
        run = Run(engine, replay, schema, progress=lambda made: progress.show(made.queued, _note(made)))
        try:
            with _until_interrupted(run) as signals:
                ended = run.run()
        except Exception:
            say(f"replay {replay.id} was cut off; {how} goes on with it")
            raise
    if json:
        print_json(ended.as_document())
    else:
        print(ended_in_words(ended), flush=True)
    if ended.state.value in ("stopped", "failed"):
        say(f"{how} goes on with it")
    if what_to_do := advice(ended):
        say(what_to_do)
    raise typer.Exit(status_of_ended(ended, interrupted=bool(signals)))


def _note(made: RunProgress) -> str:
    note = f"{made.settled:,} settled, {made.failed:,} failed, {made.waiting:,} waiting"
    if made.canary:
        note = f"canary: {note}"
    return f"{note}; nothing is worked on, is a worker running?" if made.idle else note


@contextmanager
def _until_interrupted(run: Run) -> Iterator[list[int]]:
    """The first Ctrl-C or SIGTERM lets the batch end, a second one is as usual."""
    seen: list[int] = []

    def on_signal(number: int, frame: Any) -> None:
        seen.append(number)
        if len(seen) > 1:
            raise KeyboardInterrupt
        say("ending after this batch; once more to break off")
        run.stop()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
