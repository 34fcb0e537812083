"""`hookledger db`: make, change and check the tables of a ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hookledger.cli.database import engine_of
from hookledger.cli.errors import WrongUse, say, sentence
from hookledger.cli.options import DatabaseUrl, Debug, Json, Schema, help_if_alone
from hookledger.cli.output import print_json, print_table

if TYPE_CHECKING:
    from sqlalchemy import Engine

Revision = Annotated[str, typer.Argument(metavar="[REVISION]", help="Where to go; the newest by default.")]


def init(
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help="The file to write.")] = Path("alembic.hookledger.ini"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it is there.")] = False,
    schema: Schema = "hookledger",
    debug: Debug = False,
) -> None:
    """Write an ini file for Alembic.

    For those who migrate with `alembic -c FILE upgrade head`. It holds no
    password: Alembic then reads DATABASE_URL. `hookledger db upgrade` does the same without a file.
    """
    from hookledger import migrate

    try:
        with file.open("w" if force else "x") as opened:
            opened.write(migrate.ini(schema))
    except FileExistsError:
        raise WrongUse(f"{file} is already there: give another name, or --force to overwrite it") from None
    except OSError as error:
        raise WrongUse(f"{file} cannot be written: {error.strerror}") from error
    say(f"wrote {file}; next: alembic -c {file} upgrade head")


def upgrade(
    revision: Revision = "head",
    database_url: DatabaseUrl = None,
    schema: Schema = "hookledger",
    debug: Debug = False,
) -> None:
    """Make the tables, or bring them to the newest revision.

    Safe to run at every deployment, and from several places at once.
    """
    from hookledger import migrate

    with engine_of(database_url) as engine:
        before = migrate.current(engine, schema)
        migrate.upgrade(engine, schema=schema, revision=revision)
        after = migrate.current(engine, schema)
        if after == migrate.head():
            _make_partitions_if_possible(engine, schema)
    if before == after:
        say(f"the schema {schema} is at {after}; there was nothing to do")
    else:
        say(f"upgraded the schema {schema} from {before or 'nothing'} to {after}")


def current(
    json: Json = False,
    database_url: DatabaseUrl = None,
    schema: Schema = "hookledger",
    debug: Debug = False,
) -> None:
    """Print the revision that the tables are at, and the newest one."""
    from hookledger import migrate
    from hookledger.operate.locked import reading

    with engine_of(database_url) as engine, reading(engine, schema) as reader:
        found = migrate.current(reader, schema)
    newest = migrate.head()
    if json:
        print_json({"schema": schema, "current": found, "head": newest})
    else:
        print(f"{found or 'none'} (newest: {newest})" if found != newest else f"{found} (newest)")


def check(database_url: DatabaseUrl = None, schema: Schema = "hookledger", debug: Debug = False) -> None:
    """See whether the tables are as they should be.

    Ends with 1 if this version of hookledger needs others, saying what to do.
    """
    from hookledger import migrate
    from hookledger.operate.locked import reading

    with engine_of(database_url) as engine, reading(engine, schema) as reader:
        migrate.check(reader, schema)
    say(f"the schema {schema} is in order, at {migrate.head()}")


def sql(revision: Revision = "head", schema: Schema = "hookledger", debug: Debug = False) -> None:
    """Print the SQL of an upgrade.

    For somebody else to run. Needs no database. REVISION may be FROM:TO, for example hookledger_0001:head.
    """
    from hookledger import migrate

    print(migrate.sql(schema, revision), end="")


def grants(
    role: Annotated[str, typer.Argument(metavar="ROLE", help="The role that receivers and workers connect as.")],
    schema: Schema = "hookledger",
    debug: Debug = False,
) -> None:
    """Print the GRANT statements that a role needs.

    They let it receive and work, but not migrate. Needs no database.

    For example: hookledger db grants app | psql "$DATABASE_URL"
    """
    from hookledger import migrate

    print(migrate.grants(schema, role), end="")


def partitions(
    ahead: Annotated[
        int, typer.Option("--ahead", min=0, max=52, metavar="WEEKS", help="How many weeks after this one get theirs.")
    ] = 2,
    patience: Annotated[
        float,
        typer.Option(
            "--patience",
            min=0.1,
            metavar="SECONDS",
            help="How long a step may take; more than the usual second only where nobody works on the ledger.",
        ),
    ] = 1.0,
    json: Json = False,
    database_url: DatabaseUrl = None,
    schema: Schema = "hookledger",
    debug: Debug = False,
) -> None:
    """Make the partitions of the payloads ahead.

    All of them are shown. Workers do so by themselves if their role owns the tables. If not, run this as the owner,
    once a week.
    """
    from hookledger.ledger.ready import open_ready
    from hookledger.operate.retention.brief import Patience
    from hookledger.operate.retention.partitions import make_partitions, read_partitions

    with engine_of(database_url) as engine:
        open_ready(engine, schema)
        allowed = Patience(statement=patience)
        made = make_partitions(engine, schema, ahead=ahead, patience=allowed)
        with allowed.transaction(engine) as connection:
            found = read_partitions(connection, schema)
    for start in made.left_out:
        say(f"the default partition has payloads of the week of {start:%Y-%m-%d} already; that week stays in it")
    if json:
        rows = [
            {
                "name": each.name,
                "from": each.start and each.start.isoformat(),
                "to": each.end and each.end.isoformat(),
                "bytes": each.size,
                "made": each.name in made.made,
            }
            for each in found
        ]
        print_json({"schema": schema, "partitions": rows})
        return
    cells = [
        [
            each.name,
            "" if each.start is None else f"{each.start:%Y-%m-%d} UTC",
            "" if each.end is None else f"{each.end:%Y-%m-%d} UTC",
            f"{each.size / 1024 / 1024:,.1f} MiB",
            "made" if each.name in made.made else "",
        ]
        for each in found
    ]
    print_table(["partition", "from", "to (without)", "size", ""], cells, numbers=False)


def _make_partitions_if_possible(engine: Engine, schema: str) -> None:
    """Those of the next weeks; an upgrade does not fail for them, as workers make them too."""
    from sqlalchemy.exc import DBAPIError

    from hookledger.errors import HookledgerError
    from hookledger.operate.retention.partitions import make_partitions

    try:
        make_partitions(engine, schema)
    except (HookledgerError, DBAPIError) as error:
        say(f"partitions for the next weeks were not made: {sentence(error)}")


def build(markup: Literal["rich"] | None) -> typer.Typer:
    """The group of commands."""
    group = typer.Typer(
        help="Make, change and check the tables of a ledger.", invoke_without_command=True, rich_markup_mode=markup
    )
    group.callback()(help_if_alone)
    for command in (upgrade, current, check, partitions, sql, grants, init):
        group.command(command.__name__)(command)
    return group
