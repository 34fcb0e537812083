"""The commands of the person on call, called as they are: what they print, and how they end."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.command import COMMAND, Project
from tests.outcomes import SHOP, Ledger, document
from tests.shop_history import BROKEN, OTHER, live_through, work
from tests.unit.cli.calling import Ended, call

SECRETS = ("k-test-1", "bearer-s3cr3t", "api-k3y-1234", "s3ssion-c00kie", "cl13nt-s3cret")


@pytest.fixture
def ledger(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """A ledger with nothing in it, which the commands of this process take."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    ledger = Ledger(database_url)
    yield ledger
    ledger.engine.dispose()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command that has to end well; its standard output."""

    def run(*arguments: object, status: int = 0) -> str:
        ended: Ended = call(capsys, *arguments)
        assert ended.status == status, ended
        return ended.stdout if status == 0 else ended.stderr

    return run


def test_deliveries_are_listed_as_text_json_and_ids(ledger: Ledger, run: Any, tmp_path: Path) -> None:
    ids = live_through(ledger)
    table = run("deliveries", "--source", SHOP, "--type", "order.*")
    assert [line.split()[0] for line in table.splitlines()] == [
        "id",
        *[str(ids[event]) for event in ("o3", "o2", "o1")],
    ]
    assert "UTC" in table.splitlines()[1]
    assert f"rejected; Reject: {BROKEN}" in table
    whole = json.loads(run("deliveries", "--limit", 4, "--json"))
    assert [each["event_id"] for each in whole["deliveries"]] == ["w1", "o3", "o2", "o1"]
    assert whole["before"] == ids["o1"]
    rest = [json.loads(line) for line in run("deliveries", "--before", whole["before"], "--ndjson").splitlines()]
    assert [each["event_id"] for each in rest] == ["t0", "t4", "t1", "x1", "t3", "t2"]
    assert rest[2]["outcomes"] == {"save": "stale"}
    dead = run("deliveries", "--state", "dead", "-q")
    assert dead == f"{ids['o2']}\n"
    (tmp_path / "ids").write_text(f"{ids['t1']}\n{dead}")
    assert run("deliveries", "--ids-from", tmp_path / "ids", "-q") == f"{ids['o2']}\n{ids['t1']}\n"
    (tmp_path / "ids").write_text("")
    assert run("deliveries", "--ids-from", tmp_path / "ids", "-q") == ""
    assert run("deliveries", ids["t1"], ids["o2"], "-q", "--since", "1h") == f"{ids['o2']}\n{ids['t1']}\n"


def test_nothing_found_says_whether_there_is_anything(ledger: Ledger, run: Any, capsys: Any) -> None:
    assert call(capsys, "deliveries").stderr == "no deliveries yet\n"
    ledger.record(document("e1"))
    ended = call(capsys, "deliveries", "--source", OTHER, "--fail-if-none")
    assert (ended.status, ended.stdout, ended.stderr) == (3, "", "no delivery matches\n")
    assert call(capsys, "deliveries", "-q", "--source", OTHER, "--fail-if-none").status == 3
    assert call(capsys, "dead").stderr == "no dead letters\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["deliveries", "--state", "lost"], "pending, dead or settled"),
        (["deliveries", "--outcome", "lost"], "applied, stale, superseded or ignored"),
        (["deliveries", "--since", "yesterday"], "write 3h"),
        (["deliveries", "x1"], "--event-id"),
        (["show", "x1"], "show stripe evt_123"),
        (["show", str(2**63)], "show stripe evt_123"),
        (["show", "a", "b", "c"], "show stripe evt_123"),
        (["pause", "nobody"], "no source and no handler 'nobody'"),
        (["pause", "x", "--source", "--handler"], "not both"),
        (["pause", "", "--handler"], "an empty name"),
        (["deliveries", "9" * 5000], "is no id of a delivery"),
        (["prune", "--payloads", "999999w", "--dry-run"], "write never"),
        *[
            ([*command, str(2**63)], str(2**63 - 1))
            for command in (
                ["deliveries", "--before"],
                ["erase", "--dry-run", "--id"],
                ["quarantine", "show"],
                ["quarantine", "discard"],
                ["quarantine", "--before"],
                ["replays", "stop"],
                ["replay", "--resume"],
            )
        ],
    ],
)
def test_wrong_use_is_told_in_one_sentence(ledger: Ledger, run: Any, arguments: list[str], told: str) -> None:
    assert told in run(*arguments, status=2)


def test_the_story_of_a_delivery_is_shown(ledger: Ledger, run: Any) -> None:
    ids = live_through(ledger)
    shown = run("show", ids["t1"])
    assert f"watermark 3 was set by delivery {ids['t3']} at " in shown
    assert '  "resource": "r1",' in shown
    assert "X-Sig: [masked, " in shown
    assert run("show", SHOP, "t1") == shown
    document = json.loads(run("show", ids["t1"], "--json"))
    assert document["by_handler"][0]["watermark_before"]["delivery_id"] == ids["t3"]
    assert document["by_handler"][0]["watermark_after"]["version"] == ["3"]
    assert json.loads(document["body"]["text"])["id"] == "t1"
    assert f"no delivery {2**62}" in run("show", 2**62, status=1)
    assert "with the id 'none'" in run("show", SHOP, "none", status=1)


BODIES = [
    b'{"id": "nul \\u0000", "type": "\\ud800", "x": "\xff"}',
    b"\x00\xff\xfe binary",
    b"\x1b[2J\x1b]0;title\x07",
    b'{"id": "<script>alert(1)</script>", "type": "<img src=x onerror=alert(1)>"}',
    b"{" * 100_000,
    b"",
]


def test_b071_any_body_is_shown_and_given_back_exactly(
    ledger: Ledger, tmp_path: Path, database_url: str, run: Any
) -> None:
    html, script = "<img src=x onerror=alert(1)>", "<script>1</script>"
    [id] = ledger.record(document("e1", type=html, resource="\x1b[31m\u202e"))
    ledger.execute(
        "WITH gone AS (DELETE FROM hookledger.pending) INSERT INTO hookledger.dead_letters"
        " (delivery_id, attempts, reason, error, fingerprint) VALUES (:id, 1, 'failed', :error, 'f')",
        id=id,
        error=f"{script}\x1b[2J\r\n\u202e",
    )
    environment = Project(tmp_path, database_url).environment()
    for number, body in enumerate(BODIES):
        ledger.execute("UPDATE hookledger.payloads SET body = :body", body=body)
        commands: list[list[object]] = [["show", id], ["show", id, "--json"]]
        for arguments in [*commands, ["deliveries"], ["dead"], ["deliveries", "--ndjson"]] if not number else commands:
            told = run(*arguments)
            assert not {"\x1b", "\x07", "\u202e", "\r"} & set(told)
            assert html in told
            assert script in told
        done = subprocess.run([COMMAND, "show", str(id), "--raw"], env=environment, capture_output=True, check=True)
        assert done.stdout == body


def test_no_command_shows_a_secret(ledger: Ledger, run: Any, capsys: Any, database_url: str) -> None:
    [id] = ledger.record(document("e1", client_secret=SECRETS[4]))
    signature = ledger.value(
        "SELECT pair ->> 1 FROM hookledger.payloads, jsonb_array_elements(headers) AS pair WHERE pair ->> 0 = 'X-Sig'"
    )
    headers = [["Authorization", f"Bearer {SECRETS[1]}"], ["X-Api-Key", SECRETS[2]], ["Cookie", f"a=b; s={SECRETS[3]}"]]
    ledger.execute(
        "UPDATE hookledger.payloads SET headers = headers || CAST(:headers AS jsonb)", headers=json.dumps(headers)
    )
    ledger.execute(
        "INSERT INTO hookledger.redeliveries (delivery_id, received_at, headers, differs)"
        " SELECT :id, now(), headers, false FROM hookledger.payloads",
        id=id,
    )
    error = f"refused {signature} and {SECRETS[1]} and {SECRETS[2]} and {SECRETS[3]} at postgresql://me:hunter22@db/x"
    ledger.execute(
        "INSERT INTO hookledger.failures (delivery_id, attempt, handler, error, fingerprint)"
        " VALUES (:id, 1, 'save', :error, 'ffffffffffffffff')",
        id=id,
        error=error,
    )
    ledger.execute("UPDATE hookledger.pending SET attempts = 1, last_error = :error", error=error)
    commands: list[list[object]] = [
        ["deliveries"],
        ["deliveries", "--json"],
        ["deliveries", "--ndjson", "--fingerprint", "f" * 16],
        ["show", id],
        ["show", id, "--json"],
        ["status"],
        ["status", "--json"],
        ["pause", SHOP, "--reason", "none"],
        ["pause"],
        ["resume", SHOP, "--json"],
        ["drain", "--timeout", "0"],
    ]

    def told(arguments: list[object]) -> str:
        ended = call(capsys, *arguments)
        return ended.stdout + ended.stderr

    outputs = {" ".join(map(str, arguments)): told(arguments) for arguments in commands}
    ledger.execute(
        "WITH gone AS (DELETE FROM hookledger.pending) INSERT INTO hookledger.dead_letters"
        " (delivery_id, attempts, reason, error, fingerprint) VALUES (:id, 1, 'failed', :error, 'f')",
        id=id,
        error=error,
    )
    for arguments in (["dead"], ["dead", "--json"], ["deliveries", "--state", "dead"], ["show", id]):
        outputs[f"then {arguments}"] = told(list(arguments))
    for name, output in outputs.items():
        assert output, name
        for secret in (*SECRETS, signature, "hunter22"):
            assert secret not in output, name
    assert "Bearer" not in outputs[f"show {id}"]


def test_dead_letters_are_shown_in_groups(ledger: Ledger, run: Any) -> None:
    ids = live_through(ledger)
    line = run("dead").splitlines()[1].split()
    assert (line[0], line[1]) == ("1", "rejected")
    assert run("dead", "-q") == f"{ids['o2']}\n"
    [group] = json.loads(run("dead", "--json"))["groups"]
    assert (group["count"], group["precision"], group["example"]) == (1, "exact", ids["o2"])
    assert run("deliveries", "--state", "dead", "--fingerprint", group["fingerprint"], "-q") == f"{ids['o2']}\n"
    assert json.loads(run("dead", "--ndjson", "--source", OTHER) or "null") is None


def test_what_is_no_utf_8_names_nothing(ledger: Ledger, run: Any, capsys: Any) -> None:
    """Bytes of a command line that are no UTF-8 come as half surrogate pairs."""
    ledger.record(document("o1"))
    ledger.execute("DELETE FROM hookledger.pending")
    for option in ("--source", "--reason"):
        assert call(capsys, "quarantine", option, "\udcff").status == 0
    assert call(capsys, "erase", "--where", "resource=\udcff", "--dry-run").status in (0, 3)
    assert call(capsys, "erase", "--id", 1, "--yes", "--who", "\udcff").status == 0
    assert ledger.value("SELECT who FROM hookledger.erased") == "\ufffd"


def test_the_password_in_the_url_of_a_refused_request_is_not_shown(ledger: Ledger, run: Any) -> None:
    ledger.execute(
        "INSERT INTO hookledger.quarantine (source, status, reason, method, url, headers, body, size)"
        " VALUES ('shop', 401, 'clock', 'POST', 'https://u:s3cret@host/shop?token=s3cret', '[]', '', 0)"
    )
    for shown in (run("quarantine", "show", 1), run("quarantine", "show", 1, "--json")):
        assert ("host/shop" in shown, "s3cret" in shown) == (True, False)


def test_a_long_key_is_found_as_the_sender_wrote_it(ledger: Ledger, run: Any) -> None:
    long = "x" * 600
    [id] = ledger.record(document(long, f"r{long}", 1))
    assert run("deliveries", "--event-id", long, "-q") == f"{id}\n"
    assert run("deliveries", "--resource", f"r{long}", "-q") == f"{id}\n"


def test_what_is_no_fingerprint_is_refused(ledger: Ledger, capsys: Any) -> None:
    for command in (["replay"], ["dead"], ["deliveries"]):
        for given in ("zz", "", "3f2a9c01d4e5b67", "3f2a9c01d4e5b6789", "zf2a9c01d4e5b678"):
            ended = call(capsys, *command, "--fingerprint", given)
            assert (ended.status, "is no fingerprint" in ended.stderr) == (2, True)
    assert "0 selected" in call(capsys, "replay", "--dry-run", "--fingerprint", " 3F2A9C01D4E5B678").stdout


def test_where_an_error_was_raised_is_shown_below_it(ledger: Ledger, run: Any) -> None:
    [id] = ledger.record(document("o1", type="order.paid"))
    error = "KeyError: 'how'\nat hooks.py:42 in save_customer\nDETAIL: more\nand more"
    ledger.execute(
        "INSERT INTO hookledger.failures (delivery_id, attempt, handler, error, fingerprint)"
        " VALUES (:id, 1, 'save', :error, 'ffffffffffffffff')",
        id=id,
        error=error,
    )
    ledger.execute("UPDATE hookledger.pending SET attempts = 1, last_error = :error", error=error)
    lines = [line.strip() for line in run("show", id).splitlines()]
    wanted = ["KeyError: 'how'", "at hooks.py:42 in save_customer", "DETAIL: more and more"]
    at = lines.index(f"error       {wanted[0]}")
    assert lines[at + 1 : at + 3] == wanted[1:]
    [attempt] = [number for number, line in enumerate(lines) if line.startswith("attempt 1")]
    assert lines[attempt].endswith(f"save failed [ffffffffffffffff]: {wanted[0]}")
    assert lines[attempt + 1 : attempt + 3] == wanted[1:]
    listed = run("deliveries")
    assert "KeyError: 'how'" in listed
    assert "hooks.py" not in listed
    assert json.loads(run("show", id, "--json"))["error"] == error


def test_pausing_and_resuming(ledger: Ledger, run: Any, capsys: Any) -> None:
    [id] = ledger.record(document("o1", type="order.paid"))
    assert "is paused; resume it" in call(capsys, "pause", SHOP, "--reason", "stocktaking", "--who", "anna").stderr
    assert "was paused already" in call(capsys, "pause", SHOP).stderr
    assert call(capsys, "pause", "count", "--handler").status == 0
    work(ledger)
    assert "stocktaking" in run("pause")
    [first, second] = json.loads(run("pause", "--json"))["pauses"]
    assert (first["kind"], first["name"], first["who"], first["reason"]) == ("source", SHOP, "anna", "stocktaking")
    assert (second["kind"], second["name"]) == ("handler", "count")
    assert "@" in second["who"]
    assert f"the source {SHOP} is paused" in run("show", id)
    assert "paused" in run("deliveries")
    assert "paused: source shop, handler count" in run("status")
    assert [each["name"] for each in json.loads(run("status", "--json"))["paused"]] == [SHOP, "count"]
    done = json.loads(run("resume", SHOP, "--json"))
    assert done == {"kind": "source", "name": SHOP, "paused": False, "changed": True, "made_due": 1}
    assert "is resumed" in call(capsys, "resume", "count").stderr
    assert "was not paused" in call(capsys, "resume", SHOP).stderr
    for name in ("count", "other"):
        call(capsys, "pause", name, "--handler")
    work(ledger)
    told = call(capsys, "resume", "count", "--handler").stderr
    assert "1 delivery that waited is due now; what the pause of other concerns too is put back" in told
    work(ledger)
    assert ledger.outcomes() == {("o1", "count"): "applied"}


def test_drain_waits_until_the_workers_are_done(
    ledger: Ledger, run: Any, capsys: Any, tmp_path: Path, database_url: str
) -> None:
    assert "drained" in call(capsys, "drain").stderr
    ledger.record(document("o1", type="order.paid"))
    ended = call(capsys, "drain", "--timeout", "0.2")
    assert ended.status == 1
    assert "not drained within" in ended.stderr
    assert call(capsys, "drain", "--timeout", "0", "--source", OTHER).status == 0
    with Project(tmp_path, database_url).start("drain", "--json") as draining:
        draining.wait_for_output("1 due, 0 under way")
        work(ledger)
        assert draining.wait() == 0
        assert '"drained": true' in draining.output
    ledger.record(document("o2", type="order.paid", fails="for now"))
    work(ledger)
    assert "some wait for their next attempt" in call(capsys, "drain").stderr


def test_status_goes_on_until_it_is_interrupted(ledger: Ledger, tmp_path: Path, database_url: str) -> None:
    with Project(tmp_path, database_url).start("status", "--watch", "--every", "0.1") as watching:
        watching.wait_for_output("No deliveries yet.")
        ledger.record(document("e1"))
        watching.wait_for_output("1 pending")
        watching.signal(signal.SIGINT)
        assert watching.wait() == 130
        assert "Traceback" not in watching.output
        assert all(" UTC  " in line for line in watching.output.splitlines())


def test_an_interrupted_drain_ends_with_130(ledger: Ledger, tmp_path: Path, database_url: str) -> None:
    ledger.record(document("e1"))
    with Project(tmp_path, database_url).start("drain") as draining:
        draining.wait_for_output("1 due")
        draining.signal(signal.SIGINT)
        assert draining.wait() == 130
