"""`hookledger quarantine`: look at refused requests that were kept, let them in, or discard them."""

from __future__ import annotations

import sys
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hookledger.cli.confirm import confirm, confirm_by_word
from hookledger.cli.errors import FAILED, INTERRUPTED, NOTHING, PARTLY, WrongUse, printable, say
from hookledger.cli.going import Going
from hookledger.cli.kept import document, print_each, print_groups, print_one
from hookledger.cli.options import LARGEST_NUMBER, DatabaseUrl, Debug, InboxArgument, Json, Schema
from hookledger.cli.output import counted, print_json

if TYPE_CHECKING:
    from hookledger.operate.quarantine import Wanted

SourceOption = Annotated[str | None, typer.Option("--source", metavar="NAME", help="Only those sent to this source.")]
Reason = Annotated[
    str | None,
    typer.Option("--reason", metavar="REASON", help="Only those refused for this reason, e.g. wrong-secret or clock."),
]
Since = Annotated[str | None, typer.Option("--since", metavar="TIME", help="Received since: 3h, or 2031-05-04T13:58.")]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Received before.")]
Ids = Annotated[
    list[int] | None,
    typer.Argument(metavar="[ID]...", max=LARGEST_NUMBER, help="Their numbers; else the options choose."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would become of them, and change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def _list(
    context: typer.Context,
    source: SourceOption = None,
    reason: Reason = None,
    since: Since = None,
    until: Until = None,
    each: Annotated[bool, typer.Option("--each", help="Each request instead of groups, the latest first.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="How many, with --each.")] = 50,
    before: Annotated[
        int | None,
        typer.Option("--before", metavar="ID", max=LARGEST_NUMBER, help="With --each: go on after this one."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the numbers, one a line.")] = False,
    json: Json = False,
    database_url: DatabaseUrl = None,
    schema: Schema = "hookledger",
    debug: Debug = False,
) -> None:
    """Show refused requests that were kept, by source and reason.

    A receiver keeps them if it is told to: IntakeSettings(quarantine=Quarantine()).
    """
    if context.invoked_subcommand is not None:
        return
    from hookledger.cli.database import bounded_engine_of
    from hookledger.operate.quarantine import groups, kept

    wanted = _wanted(None, source, reason, since, until)
    with bounded_engine_of(database_url, schema) as engine, engine.connect() as connection:
        if each or quiet:
            rows = kept(connection, schema, wanted, limit=limit, before=before)
        else:
            found = groups(connection, schema, wanted)
    if quiet:
        for one in rows:
            print(one.id)
    elif each:
        print_each(rows, json=json)
    else:
        print_groups(found, json=json)


def show(
    id: Annotated[int, typer.Argument(metavar="ID", max=LARGEST_NUMBER, help="The number of the request.")],
    raw: Annotated[bool, typer.Option("--raw", help="Only the body, byte for byte.")] = False,
    json: Json = False,
    database_url: DatabaseUrl = None,
    schema: Schema = "hookledger",
    debug: Debug = False,
) -> None:
    """Show one refused request.

    Why it was refused, its headers with secrets masked, and its body.
    """
    from hookledger.cli.database import bounded_engine_of
    from hookledger.operate.quarantine import one

    with bounded_engine_of(database_url, schema) as engine, engine.connect() as connection:
        kept = one(connection, schema, id)
    if raw and sys.stdout.isatty():
        print("\n".join(printable(line) for line in kept.request.body.decode("utf-8", "replace").split("\n")))
    elif raw:
        sys.stdout.buffer.write(kept.request.body)
        sys.stdout.buffer.flush()
    elif json:
        print_json(document(kept, whole=True))
    else:
        print_one(kept)


def release(
    inbox: InboxArgument,
    ids: Ids = None,
    source: SourceOption = None,
    reason: Reason = None,
    since: Since = None,
    until: Until = None,
    every: Annotated[bool, typer.Option("--all", help="All that were kept.")] = False,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Let in what does not verify, too. Anybody may have sent it.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    confirmed: Annotated[
        str | None,
        typer.Option("--confirm", metavar="WORD", help="The typed word of --unverified, without a terminal."),
    ] = None,
    json: Json = False,
    database_url: DatabaseUrl = None,
    debug: Debug = False,
) -> None:
    """Verify refused requests again, and let them in.

    The secrets of today are taken, and those that verify are let in. They come in by the door of the receiver, with the
    time at which they came, from which their age counts too. What the sender has sent again meanwhile is known, and
    nothing of it changes.

    Exit status: 0 all are in, 1 none is or declined, 2 wrong use, 3 nothing matches, 5 some are.

    Example: hookledger quarantine release hooks:inbox --source stripe --since 3h
    """
    from hookledger.cli.database import engine_of
    from hookledger.cli.load import load_inbox
    from hookledger.ledger.ready import open_ready
    from hookledger.operate.quarantine import Released, Verdict
    from hookledger.operate.quarantine import release as let_in

    wanted = _chosen(ids, source, reason, since, until, every=every)
    loaded = load_inbox(inbox)
    done: list[Released] = []
    with engine_of(database_url) as engine:
        open_ready(engine, loaded.schema)
        if not dry_run:
            planned = list(let_in(engine, loaded, wanted, unverified=unverified, dry_run=True))
            if planned:
                _ask(planned, unverified=unverified, yes=yes, confirmed=confirmed)
        with Going() as going:
            for released in let_in(
                engine, loaded, wanted, unverified=unverified, dry_run=dry_run, stopping=going.stopping
            ):
                done.append(released)
                going.tell(f"{len(done):,} looked at")
    counts = Counter(released.verdict for released in done)
    if json:
        print_json(
            {
                "dry_run": dry_run,
                "counts": {verdict.value: counts[verdict] for verdict in Verdict},
                "requests": [
                    {"id": each.id, "verdict": each.verdict.value, "says": each.says, "deliveries": each.delivery_ids}
                    for each in done
                ],
            }
        )
    else:
        for each in done:
            if each.verdict in (Verdict.REFUSED, Verdict.HEAD_ONLY, Verdict.EMPTY):
                print(f"{each.id} {each.verdict.value}: {each.says}")
        would = "would be " if dry_run else ""
        print(f"{counts[Verdict.LET_IN]:,} {would}let in, {counts[Verdict.KNOWN]:,} known, {_left(counts):,} left")
    if going.interrupted:
        say("stopped; run the same command again to go on")
        raise typer.Exit(INTERRUPTED)
    if not done:
        raise typer.Exit(NOTHING)
    if _left(counts):
        raise typer.Exit(PARTLY if len(done) > _left(counts) else FAILED)


def discard(
    ids: Ids = None,
    source: SourceOption = None,
    reason: Reason = None,
    since: Since = None,
    until: Until = None,
    every: Annotated[bool, typer.Option("--all", help="All that were kept.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    database_url: DatabaseUrl = None,
    schema: Schema = "hookledger",
    debug: Debug = False,
) -> None:
    """Remove refused requests for good."""
    from hookledger.cli.database import engine_of
    from hookledger.ledger.ready import open_ready
    from hookledger.operate.locked import reading
    from hookledger.operate.quarantine import discard as remove

    wanted = _chosen(ids, source, reason, since, until, every=every)
    with engine_of(database_url) as engine:
        with reading(engine, schema) as reader:
            open_ready(reader, schema)
            count = remove(reader, schema, wanted, dry_run=True)
        if dry_run:
            print(f"would discard {counted(count, 'refused request', 'refused requests')}")
            return
        if not count:
            say("nothing in quarantine matches")
            raise typer.Exit(NOTHING)
        confirm(f"Discard {counted(count, 'refused request', 'refused requests')} for good", yes=yes)
        print(f"discarded {counted(remove(engine, schema, wanted), 'refused request', 'refused requests')}")


def build(markup: Literal["rich"] | None) -> typer.Typer:
    """The group of commands."""
    group = typer.Typer(
        help="Look at refused requests, let them in, or discard them.",
        invoke_without_command=True,
        rich_markup_mode=markup,
    )
    group.callback()(_list)
    for command in (show, release, discard):
        group.command(command.__name__)(command)
    return group


def _ask(planned: list[Any], *, unverified: bool, yes: bool, confirmed: str | None) -> None:
    from hookledger.operate.quarantine import Verdict

    count = sum(1 for each in planned if each.verdict in (Verdict.LET_IN, Verdict.KNOWN))
    if unverified:
        requests = counted(count, "request", "requests")
        warning = f"Let in {requests}, verified or not? Your handlers will run on unauthenticated data."
        # --yes never means force.
        confirm_by_word(warning, "unverified", given=confirmed, option="--confirm")
    elif count:
        verified = "1 request that verifies" if count == 1 else f"{count:,} requests that verify"
        confirm(f"Let in {verified} now, and leave {len(planned) - count:,}", yes=yes)


def _left(counts: Counter[Any]) -> int:
    from hookledger.operate.quarantine import Verdict

    return counts[Verdict.REFUSED] + counts[Verdict.HEAD_ONLY]


def _wanted(
    ids: list[int] | None, source: str | None, reason: str | None, since: str | None, until: str | None
) -> Wanted:
    from hookledger.operate.moments import read_moment
    from hookledger.operate.quarantine import Wanted

    now = datetime.now(UTC)
    return Wanted(
        ids=tuple(ids) if ids else None,
        source=source,
        reason=reason,
        since=None if since is None else read_moment(since, now),
        until=None if until is None else read_moment(until, now),
    )


def _chosen(
    ids: list[int] | None, source: str | None, reason: str | None, since: str | None, until: str | None, *, every: bool
) -> Wanted:
    wanted = _wanted(ids, source, reason, since, until)
    if wanted.is_everything and not every:
        raise WrongUse("say which: numbers, --source, --reason, --since or --until, or --all")
    return wanted
