"""`hookledger replay`: make dead or settled deliveries pending again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hookledger.cli.confirm import confirm_by_word
from hookledger.cli.errors import WrongUse, say
from hookledger.cli.filtering import (
    EventIdOption,
    FingerprintOption,
    IdsArgument,
    IdsFrom,
    OutcomeOption,
    ResourceOption,
    SettledSinceOption,
    SettledUntilOption,
    SinceOption,
    SourceOption,
    StateOption,
    TextOption,
    TypeOption,
    UntilOption,
    read_filter,
    read_ids,
)
from hookledger.cli.load import load_inbox, schema_of
from hookledger.cli.options import LARGEST_NUMBER, DatabaseUrl, Debug, Json, Schema
from hookledger.cli.output import counted
from hookledger.cli.replaying import (
    Canary,
    DryRun,
    InboxOption,
    MaxFailures,
    MostPending,
    Rate,
    Reason,
    Yes,
    carry_out,
    options_of,
    run_and_tell,
)
from hookledger.cli.who import WhoOption

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from hookledger.operate.replay import Plan
    from hookledger.operate.replay.standing import Standing

MOST_NAMED = 50
"""Single deliveries that are told of one by one."""


def replay(
    ids: IdsArgument = None,
    ids_from: IdsFrom = None,
    source: SourceOption = None,
    type: TypeOption = None,
    resource: ResourceOption = None,
    event_id: EventIdOption = None,
    outcome: OutcomeOption = None,
    state: StateOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    settled_since: SettledSinceOption = None,
    settled_until: SettledUntilOption = None,
    fingerprint: FingerprintOption = None,
    text: TextOption = None,
    include_settled: Annotated[
        bool, typer.Option("--include-settled", help="Also settled ones; those with all their effects are skipped.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    rate: Rate = None,
    canary: Canary = None,
    max_failures: MaxFailures = None,
    most_pending: MostPending = None,
    resume: Annotated[
        int | None,
        typer.Option(
            "--resume", metavar="REPLAY", max=LARGEST_NUMBER, help="Go on with a replay that was stopped or cut off."
        ),
    ] = None,
    forget_effects: Annotated[
        str | None,
        typer.Option(
            "--forget-effects",
            metavar="HANDLER",
            help="Forget what this handler did, so that it runs a second time. Doubled effects are likely.",
        ),
    ] = None,
    confirmed: Annotated[
        str | None,
        typer.Option("--confirm", metavar="HANDLER", help="The typed word of --forget-effects, without a terminal."),
    ] = None,
    inbox: InboxOption = None,
    reason: Reason = None,
    who: WhoOption = None,
    json: Json = False,
    database_url: DatabaseUrl = None,
    schema: Schema = "hookledger",
    debug: Debug = False,
) -> None:
    """Make dead deliveries, or settled ones, pending again.

    Settled ones only if you say so. It shows a plan and asks first. The worker then decides: what has its effect is
    not done again, and what is older than the watermark stays stale. Safe to press twice; Ctrl-C ends it after the
    batch, --resume goes on.

    Example: hookledger replay --fingerprint 3f2a9c01d4e5b678 --canary 10 --max-failures 5%
    """
    from hookledger.cli.database import engine_of
    from hookledger.ledger.ready import open_ready
    from hookledger.operate import replay as replays
    from hookledger.operate.locked import reading

    given = {
        "source": source, "type": type, "resource": resource, "event_id": event_id, "outcome": outcome, "state": state,
        "since": since, "until": until, "settled_since": settled_since, "settled_until": settled_until,
        "fingerprint": fingerprint, "text": text,
    }  # fmt: skip
    loaded = None if inbox is None else load_inbox(inbox)
    schema = schema_of(loaded, schema)
    if resume is not None:
        _refuse_filters(resume, any(value is not None for value in (*given.values(), ids, ids_from, forget_effects)))
        with engine_of(database_url) as engine:
            open_ready(engine, schema)
            before = replays.find(engine, schema, resume).options
            options = options_of(rate, canary, max_failures, most_pending, before)
            run_and_tell(engine, schema, replays.resume(engine, schema, resume, options), json=json)
    numbers = read_ids(ids, ids_from)
    chosen = read_filter(ids=numbers, **given)
    kind, matching = replays.Kind.REPLAY, None
    if forget_effects is not None:
        kind, matching = replays.Kind.FORGET, replays.Matching(forget_effects)
    selection = replays.Selection(chosen, include_settled, kind, matching)
    options = options_of(rate, canary, max_failures, most_pending)
    with engine_of(database_url) as engine:
        with reading(engine, schema) as reader:
            open_ready(reader, schema)
            named = _standings(reader, schema, numbers)

        def ask(plan: Plan) -> None:
            assert forget_effects is not None
            warning = (
                f"{forget_effects} will run a second time for {counted(plan.total, 'delivery', 'deliveries')} "
                "whose effects it has written. "
                "Doubled effects are likely; what it does outside the database is done again"
            )
            confirm_by_word(warning, forget_effects, given=confirmed, option="--confirm")

        carry_out(
            engine,
            schema,
            selection,
            inbox=loaded,
            options=options,
            who=who,
            reason=reason,
            dry_run=dry_run,
            yes=yes,
            json=json,
            more=lambda: [one.as_document() for one in named],
            tell=lambda: _tell(named, selection),
            ask=None if forget_effects is None else ask,
        )


def _refuse_filters(resume: int, given: bool) -> None:
    if given:
        raise WrongUse(f"--resume {resume} goes on with the deliveries of that replay: leave out the ids and filters")


def _standings(engine: Engine, schema: str, ids: tuple[int, ...] | None) -> list[Standing]:
    from hookledger.operate.replay.standing import standings

    if not ids or len(ids) > MOST_NAMED:
        return []
    with engine.connect() as connection:
        return standings(connection, schema, ids)


def _tell(named: list[Standing], selection: object) -> None:
    from hookledger.operate.replay import Selection

    assert isinstance(selection, Selection)
    for one in named:
        say(f"  {in_words(one, touched=one.state in selection.states)}")


def in_words(standing: Standing, *, touched: bool) -> str:
    """What a replay does with a delivery, or why nothing."""
    from hookledger.operate.moments import shown_moment

    name = f"delivery {standing.id}"
    if standing.state is None:
        return f"{name} is not in the ledger"
    if standing.state.value == "pending":
        if standing.in_progress:
            return f"{name} is in progress (attempt {standing.attempts}): left alone, it is not run twice at a time"
        return f"{name} is scheduled for {shown_moment(standing.due_at)}: left alone, it runs by itself"
    if touched:
        return f"{name} is {standing.state.value}"
    if standing.state.value == "settled":
        return f"{name} is settled: left alone (--include-settled)"
    return f"{name} is dead: left alone"
