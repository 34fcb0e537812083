"""`hookledger backfill`: a new handler over old deliveries."""

from __future__ import annotations

from typing import Annotated

import typer

from hookledger.cli.errors import WrongUse
from hookledger.cli.filtering import (
    OutcomeOption,
    ResourceOption,
    SinceOption,
    SourceOption,
    TextOption,
    TypeOption,
    UntilOption,
    read_filter,
)
from hookledger.cli.load import load_inbox_with_handlers, schema_of
from hookledger.cli.options import DatabaseUrl, Debug, Json, Schema
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
)
from hookledger.cli.who import WhoOption

HandlerArgument = Annotated[str, typer.Argument(metavar="HANDLER", help="Its name in the ledger.")]


def backfill(
    handler: HandlerArgument,
    source: SourceOption = None,
    type: TypeOption = None,
    resource: ResourceOption = None,
    outcome: OutcomeOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    text: TextOption = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    rate: Rate = None,
    canary: Canary = None,
    max_failures: MaxFailures = None,
    most_pending: MostPending = None,
    inbox: InboxOption = None,
    reason: Reason = None,
    who: WhoOption = None,
    json: Json = False,
    database_url: DatabaseUrl = None,
    schema: Schema = "hookledger",
    debug: Debug = False,
) -> None:
    """Run a new handler over old deliveries.

    It takes those that the handler matches and has no effect of. The other handlers of a delivery are not run
    again. Deploy the handler to your workers first: they run it. Plan, bar, canary, stop and resume are those of
    `hookledger replay`.

    Example: hookledger backfill add_revenue --inbox hooks:inbox --since 30d
    """
    if inbox is None:
        raise WrongUse("a backfill has to know the handler: give --inbox MODULE:INBOX, as for `hookledger worker`")
    loaded = load_inbox_with_handlers(inbox)
    schema = schema_of(loaded, schema)

    from hookledger.cli.database import engine_of
    from hookledger.ledger.ready import open_ready
    from hookledger.operate.backfill import backfill as select
    from hookledger.operate.locked import reading

    chosen = read_filter(
        source=source, type=type, resource=resource, outcome=outcome, since=since, until=until, text=text
    )
    selection = select(loaded, handler, chosen)
    with engine_of(database_url) as engine:
        with reading(engine, schema) as reader:
            open_ready(reader, schema)
        carry_out(
            engine,
            schema,
            selection,
            inbox=loaded,
            options=options_of(rate, canary, max_failures, most_pending),
            who=who,
            reason=reason,
            dry_run=dry_run,
            yes=yes,
            json=json,
        )
