"""`hookledger prune`, `erase`, `db partitions`, `import` and `quarantine`, as a person on call uses them."""

from __future__ import annotations

import base64
import json
import os
import pty
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from hookledger import stripe
from hookledger.ledger.rights import grants
from hookledger.operate.retention.partitions import week_of
from tests.aged import days_ago, holds, make_old_partition, make_older, settle
from tests.end_to_end.command import BODY, COMMAND, HOOKS, SECRET, Project, assert_told_in_one_sentence
from tests.outcomes import Ledger, document

OLD = "whsec_b2xk"


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    ledger = Ledger(database_url)
    yield ledger
    ledger.engine.dispose()


@pytest.fixture
def project(tmp_path: Path, database_url: str) -> Project:
    """A folder with an inbox, and a database with a ledger."""
    project = Project(tmp_path, database_url)
    project.write("hooks.py", HOOKS)
    return project


def typed(project: Project, answer: str, *arguments: str) -> tuple[int, str]:
    """Run a command on a terminal, and type an answer into it; the exit status, and what was shown."""
    outer, inner = pty.openpty()
    try:
        process = subprocess.Popen(
            [str(COMMAND), *arguments],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            cwd=project.folder,
            env=project.environment({"TERM": "dumb"}),
        )
        os.close(inner)
        os.write(outer, f"{answer}\n".encode())
        written = b""
        try:
            while more := os.read(outer, 65536):
                written += more
        except OSError:
            pass
        return process.wait(), written.decode()
    finally:
        os.close(outer)


def refuse(ledger: Ledger, secret: str, **headers: str) -> int:
    """Keep a request of Stripe as the receiver does; its number."""
    at = days_ago(0.1)
    request = stripe(secrets=secret).signed(BODY, at.timestamp())
    pairs = [*[list(pair) for pair in request.headers], *[[name.replace("_", "-"), headers[name]] for name in headers]]
    columns = "at, source, status, reason, diagnosis, method, url, headers, body, size"
    return int(
        ledger.value(
            f"INSERT INTO hookledger.quarantine ({columns}) VALUES (:at, 'stripe', 401, 'wrong-secret', 'no secret"
            " matches', 'POST', 'https://x/stripe?token=s3cr3t', CAST(:headers AS jsonb), :body, :size) RETURNING id",
            at=at,
            headers=json.dumps(pairs),
            body=BODY,
            size=len(BODY),
        )
    )


def test_prune_shows_asks_and_drops(project: Project, ledger: Ledger) -> None:
    old = make_old_partition(ledger, 50)
    ledger.record(document("done"), document("needed"))
    make_older(ledger, 50, "done", "needed")
    settle(ledger, "done")

    assert_told_in_one_sentence(project.run("prune"), 2, "--payloads 30d")
    assert_told_in_one_sentence(project.run("prune", "--payloads", "1h"), 2, "'shop'", "3 days", "--force")
    would = project.run("prune", "--payloads", "30d", "--dry-run")
    assert (would.returncode, f"would drop {old}" in would.stdout) == (0, True)
    unasked = project.run("prune", "--payloads", "30d")
    assert (unasked.returncode, "give --yes" in unasked.stderr) == (2, True)
    assert holds(ledger, old) == ["done", "needed"]

    done = project.run("prune", "--payloads", "30d", "--yes", "--json")

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [(each["name"], each["kept"]) for each in told["partitions"]] == [(old, None)]
    assert told["moved_payloads"] == 1
    assert holds(ledger, "payloads_default") == ["needed"]
    again = project.run("prune", "--payloads", "30d", "--yes")
    assert (again.returncode, again.stderr.splitlines()[-1][:20]) == (0, "nothing was removed:")


def test_a_role_of_workers_is_told_who_may_remove(project: Project, ledger: Ledger, database_url: str) -> None:
    make_old_partition(ledger, 50)
    ledger.record(document("done"))
    make_older(ledger, 50, "done")
    settle(ledger, "done")
    role = str(ledger.value("SELECT 'worker_' || pg_backend_pid() || '_' || current_database()"))
    ledger.execute(f'CREATE ROLE "{role}"')
    try:
        for statement in filter(str.strip, grants("hookledger", role).split(";\n")):
            ledger.execute(statement)
        url = make_url(database_url).update_query_dict({"options": f"-c role={role}"})
        given = ("--database-url", url.render_as_string(hide_password=False))
        for command in (("prune", "--payloads", "30d"), ("erase", "--id", "1")):
            for how in ("--yes", "--dry-run"):
                told = f"run `hookledger {command[0]}` as the owner of the tables"
                assert_told_in_one_sentence(project.run(*command, how, *given), 2, told)
    finally:
        ledger.execute(f'DROP OWNED BY "{role}"')
        ledger.execute(f'DROP ROLE "{role}"')


def test_partitions_are_made_by_an_upgrade_and_shown(project: Project, ledger: Ledger) -> None:
    upgraded = project.run("db", "upgrade")
    shown = project.run("db", "partitions", "--ahead", "3", "--json")

    assert (upgraded.returncode, shown.returncode) == (0, 0), upgraded.stderr + shown.stderr
    partitions = json.loads(shown.stdout)["partitions"]
    this = week_of(ledger.now())
    assert [each["from"] for each in partitions[:-1]] == [
        (this + number * timedelta(days=7)).isoformat() for number in range(4)
    ]
    assert [each["made"] for each in partitions] == [False, False, False, True, False]


def test_erase_asks_with_the_id_typed(project: Project, ledger: Ledger) -> None:
    ledger.record(document("e1", "r1", email="jane@example.com"), document("e2", "r1"))
    settle(ledger, "e1")

    assert_told_in_one_sentence(project.run("erase"), 2, "--id")
    declined, shown = typed(project, "yes", "erase", "--id", "1")
    assert (declined, "can never be replayed" in shown) == (1, True)
    erased, shown = typed(project, "1", "erase", "--id", "1")
    assert (erased, "erased 1 delivery;" in shown) == (0, True)
    assert bytes(ledger.value("SELECT body FROM hookledger.payloads ORDER BY id LIMIT 1")) == b""

    rest = project.run("erase", "--where", "resource=r1", "--yes")
    assert (rest.returncode, "1 were left" in rest.stderr) == (5, True), rest.stderr
    assert [project.run("erase", "--id", "9", how).returncode for how in ("--yes", "--dry-run")] == [3, 3]


def captured(id: str, secret: str = SECRET, **more: Any) -> bytes:
    at = days_ago(9)
    request = stripe(secrets=secret).signed(BODY.replace(b"evt_1", id.encode()), at.timestamp())
    given = {
        "method": "POST",
        "url": "https://example.com/webhooks/stripe",
        "headers": dict(request.headers),
        "body": base64.b64encode(request.body).decode(),
        "received_at": at.isoformat(),
        **more,
    }
    return json.dumps(given).encode() + b"\n"


def test_import_records_what_verifies_and_names_the_rest(project: Project, ledger: Ledger) -> None:
    project.write("good.ndjson", captured("evt_1") + captured("evt_2"))
    project.write("mixed.ndjson", captured("evt_2") + b"{}\n" + captured("evt_3", OLD))

    tried = project.run("import", "hooks:inbox", "good.ndjson", "--dry-run")
    assert (tried.returncode, "2 deliveries would be recorded" in tried.stdout) == (0, True)
    assert ledger.pending() == {}
    done = project.run("import", "hooks:inbox", "good.ndjson", "--yes", "--json")
    assert (done.returncode, json.loads(done.stdout)["recorded"]) == (0, 2)
    again = project.run("import", "hooks:inbox", "mixed.ndjson", "--yes")

    assert again.returncode == 5
    assert again.stdout == "3 read: 0 deliveries recorded, 1 known, 0 without an event, 2 left out\n"
    assert again.stderr.startswith("line 2: it names no source")
    assert "line 3: no signature" in again.stderr
    assert SECRET not in again.stderr + done.stderr
    assert sorted(ledger.pending()) == ["evt_1", "evt_2"]


def test_quarantine_is_looked_at_and_let_in(project: Project, ledger: Ledger) -> None:
    good = refuse(ledger, SECRET, Authorization="Bearer t0psecret")
    forged = refuse(ledger, OLD)

    listed = project.run("quarantine").stdout
    assert ("stripe" in listed, "wrong-secret" in listed) == (True, True)
    assert project.run("quarantine", "-q").stdout == f"{forged}\n{good}\n"
    for shown in (project.run("quarantine", "show", str(good)), project.run("quarantine", "show", str(good), "--json")):
        assert (shown.returncode, "no secret matches" in shown.stdout) == (0, True)
        assert "t0psecret" not in shown.stdout
        assert "s3cr3t" not in shown.stdout
        assert "v1=" not in shown.stdout
    assert project.run("quarantine", "show", str(good), "--raw").stdout == BODY.decode()

    released = project.run("quarantine", "release", "hooks:inbox", "--source", "stripe", "--yes")

    assert released.returncode == 5
    assert f"{forged} refused" in released.stdout
    assert "1 let in, 0 known, 1 left" in released.stdout
    assert list(ledger.pending()) == ["evt_1"]
    body = '{"client_secret": "t0psecret", "a": 1}'
    change = "UPDATE hookledger.quarantine SET body = CAST(:body AS text)::bytea, size = :size WHERE id = :id"
    ledger.execute(change, body=body, size=len(body), id=forged)
    shown_masked = project.run("quarantine", "show", str(forged)).stdout
    assert ("t0psecret" in shown_masked, '"a": 1' in shown_masked) == (False, True)
    declined, shown = typed(project, "y", "quarantine", "release", "hooks:inbox", str(forged), "--unverified")
    assert (declined, "unauthenticated data" in shown) == (1, True)
    forcing = ("quarantine", "release", "hooks:inbox", str(forged), "--unverified", "--yes")
    assert [project.run(*forcing, *more).returncode for more in ((), ("--confirm", "yes"))] == [2, 2]
    let_in, shown = typed(project, "unverified", "quarantine", "release", "hooks:inbox", str(forged), "--unverified")
    assert let_in == 0, shown
    marked = "SELECT count(*) FROM hookledger.imported WHERE origin LIKE 'quarantine %, not verified'"
    assert ledger.value(marked) == 1
