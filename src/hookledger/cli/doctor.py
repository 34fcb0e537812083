"""`hookledger doctor`: what is wrong, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hookledger.cli.errors import one_line, unhealthy, without_password
from hookledger.cli.options import DatabaseUrl, Debug, Json, Schema
from hookledger.cli.output import print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hookledger.doctor import Finding
    from hookledger.inbox import Inbox


def doctor(
    inbox: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODULE:INBOX]",
            help="Where your inbox is, as hooks:inbox; without it the database alone is looked at.",
        ),
    ] = None,
    json: Json = False,
    database_url: DatabaseUrl = None,
    schema: Schema = "hookledger",
    debug: Debug = False,
) -> None:
    """Look for what is wrong, or may become so, and say what to do.

    It looks at the inbox, the schema, the rights of the role, settings of the server, a pooler in front of it,
    clocks, old transactions and the work that waits. It changes nothing.
    Run it with the DATABASE_URL of receivers and workers.

    Ends with 0 if there are notes at the most, and with 6 if there is more.
    """
    from hookledger.cli.load import load_inbox
    from hookledger.doctor import examine, is_healthy, refused_secret
    from hookledger.engine import create
    from hookledger.engine import database_url as read_url
    from hookledger.errors import SecretError

    url = read_url(database_url)
    findings: list[Finding] = []
    loaded: Inbox | None = None
    if inbox is not None:
        try:
            loaded = load_inbox(inbox)
        except SecretError as error:
            findings.append(refused_secret(error))
    engine = create(url, pool_size=1, application_name="hookledger doctor")
    try:
        findings += examine(loaded, engine, schema=schema)
    finally:
        engine.dispose()
    healthy = is_healthy(findings)
    if json:
        print_json({"healthy": healthy, "findings": [as_document(finding) for finding in findings]})
    else:
        _print(findings)
    if not healthy:
        unhealthy(_counted(findings))


def as_document(finding: Finding) -> dict[str, str]:
    """A finding as the object that --json prints."""
    return {
        "severity": finding.severity.value,
        "check": finding.check,
        "what": shown(finding.what),
        "do": shown(finding.do),
    }


def shown(text: str) -> str:
    """The text on one line and without passwords, whatever a server put into an error."""
    return one_line(without_password(text))


def _print(findings: Sequence[Finding]) -> None:
    for finding in findings:
        print(f"{finding.severity.value}: {finding.check}: {shown(finding.what)}")
        print(f"    do: {shown(finding.do)}")
    print(f"{_counted(findings)}." if findings else "Nothing found: all is well.")


def _counted(findings: Sequence[Finding]) -> str:
    from hookledger.doctor import Severity

    counts = {severity: sum(finding.severity is severity for finding in findings) for severity in Severity}
    told = [f"{count} {severity.value}{'' if count == 1 else 's'}" for severity, count in counts.items() if count]
    return ", ".join(told)
