"""What senders wrote is text to whoever looks at it, on a terminal and in a pipe (B071)."""

from __future__ import annotations

import json
import logging
import pty
import time
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from sqlalchemy import Engine, text

from hookledger.cli.logs import JsonLines, PlainLines
from hookledger.cli.passing import Passing
from hookledger.sources import stripe
from tests.end_to_end.command import HOOKS, SECRET, Project
from tests.end_to_end.test_cli_terminal import STYLE, on_a_terminal
from tests.processes import wait_until

MARKUP = "<img src=x onerror=alert(1)>"
ESCAPES = "\x1b]0;title\x07\x1b[2J\x1b[31m\x9b1m\r\x08\u202e\u2028\u200b\x7f"
SHOWN = "\ufffd]0;title"
"""The beginning of that, as it is shown."""
HANDLERS = """
from hookledger import Reject

@inbox.accumulate("stripe", name="repeat")
def repeat(delivery: Delivery, tx: Connection) -> None:
    if delivery.data["n"]:
        raise Reject(f"<script>1</script> {delivery.data['note']}")
    raise ValueError(f"<script>1</script> {delivery.data['note']}")
"""


def is_text(output: str) -> bool:
    """Whether nothing in it moves a cursor or changes a terminal."""
    return all(char.isprintable() or char == "\n" for char in output)


def event(number: int) -> bytes:
    """An event whose every field is what a sender would rather have run than shown."""
    fields = {"id": f'"><svg onload=1>{number}{ESCAPES}', "type": f"{MARKUP}{ESCAPES}", "note": ESCAPES, "n": number}
    return json.dumps({**fields, "created": 1, "data": {"object": {"id": f"[red]{ESCAPES}"}}}).encode()


def test_b071_the_dev_command(tmp_path: Path, empty_database_url: str) -> None:
    project = Project(tmp_path)
    project.write("hooks.py", HOOKS + HANDLERS)
    arguments = ["--port", "0", "--log-level", "debug", "--database-url", empty_database_url]
    with project.start("dev", "hooks:inbox", *arguments) as child:
        child.wait_for_output("ready;")
        address = urlsplit(child.wait_for_output("receiver ").split()[-1])
        for number in (0, 1):
            request = stripe(secrets=SECRET).signed(event(number), time.time())
            connection = HTTPConnection("127.0.0.1", address.port or 0)
            headers = dict([*request.headers, ("X-Link", "javascript:alert(1)")])
            connection.request("POST", "/webhooks/stripe", request.body, headers)
            assert connection.getresponse().status == 200
            connection.close()
        wait_until(lambda: child.output.count("<script>1</script>") >= 4)
        output = child.output
    assert f'"><svg onload=1>0{SHOWN}' in output
    assert f"{MARKUP}{SHOWN}" in output
    assert is_text(output)


def test_b071_a_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    outer, inner = pty.openpty()
    with open(inner, "w", encoding="utf-8") as terminal, open(outer, "rb", buffering=0) as screen:
        monkeypatch.setattr("sys.stdout", terminal)
        passing = Passing(as_json=False)
        passing.refused(f"{MARKUP}[red]{ESCAPES}", 401, f"<script>1</script>{ESCAPES}")
        terminal.flush()
        written = screen.read(65536).decode()
    assert f"{MARKUP}[red]{SHOWN}" in written
    assert is_text(STYLE.sub("", written).replace("\r\n", "\n"))


def test_b071_status(tmp_path: Path, database_url: str, engine: Engine) -> None:
    odd = f"{MARKUP}[red]{ESCAPES}"
    with engine.begin() as connection:
        for statement in (
            "INSERT INTO hookledger.deliveries (source, event_id, event_type, payload_id, received_at, body_digest)"
            " VALUES (:odd, 'e', :odd, 1, now(), '')",
            "INSERT INTO hookledger.effects (source, event_id, handler, delivery_id, outcome)"
            " VALUES (:odd, 'e', :odd, 1, 'applied')",
        ):
            connection.execute(text(statement), {"odd": odd})
    project = Project(tmp_path, database_url)
    shown = project.run("status").stdout
    assert f"{MARKUP}[red]{SHOWN}" in shown
    assert is_text(shown)
    assert is_text(STYLE.sub("", on_a_terminal(project, ["status"], COLUMNS="300")).replace("\r\n", "\n"))
    assert is_text(project.run("status", "--json").stdout)


def test_b071_errors(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for arguments in (["status", "--schema", f"x{ESCAPES}"], ["worker", f"no{ESCAPES}:inbox"], [f"nix{ESCAPES}"]):
        done = project.run(*arguments)
        assert done.returncode in (1, 2)
        assert done.stderr.startswith("error: ")
        assert is_text(done.stderr)


def test_b071_the_log() -> None:
    try:
        raise ValueError(f'<script>1</script>{ESCAPES}\n  File "forged"')
    except ValueError as error:
        record = logging.LogRecord("hookledger", logging.ERROR, "x.py", 1, f"{MARKUP}{ESCAPES}", None, None)
        record.exc_info = (ValueError, error, error.__traceback__)
    plain = PlainLines().format(record)
    assert f"ValueError: <script>1</script>{SHOWN}" in plain
    assert is_text(plain)
    assert is_text(JsonLines().format(record))
