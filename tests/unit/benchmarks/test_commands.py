"""The benchmarks' command line, and the parts of them that can be wrong without anybody noticing."""

from __future__ import annotations

import hashlib
import hmac
import json
from importlib import import_module
from xml.etree import ElementTree

import pytest

from benchmarks.__main__ import COMMANDS, make_parser
from benchmarks.drain.command import MEASURED_AGAINST
from benchmarks.drain.contender import Job, as_json
from benchmarks.growth.picture import draw
from benchmarks.receive.requests import SECRET, Requests, verifies
from benchmarks.report import Failed, ratio


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_json_and_runs(command: str) -> None:
    options = make_parser().parse_args([command, "--json", "--runs", "7"])

    assert options.json
    assert options.runs == 7


def test_sizes_of_the_curves_are_options() -> None:
    options = make_parser().parse_args(["growth", "--quick", "--settled", "10", "20", "--held-seconds", "1.5"])

    assert options.settled == [10, 20]
    assert options.held_seconds == 1.5


def test_rivals_that_insert_are_compared_with_ours_that_inserts() -> None:
    assert MEASURED_AGAINST["plain_insert"] == "ours_insert"
    assert MEASURED_AGAINST["plain"] == "ours"


@pytest.mark.parametrize("command", ["drain", "receive", "growth"])
def test_unknown_rival_or_section_is_refused_before_anything_starts(command: str) -> None:
    options = make_parser().parse_args([command, "--only", "celery"])

    with pytest.raises(Failed, match=r"there is no (rival|section) 'celery': choose of"):
        import_module(COMMANDS[command][0]).run(options)


def test_ratio_is_ours_divided_by_the_rival() -> None:
    assert ratio(150.0, 100.0) == 1.5


def test_job_arrives_as_it_was_sent() -> None:
    job = Job(url="postgresql+psycopg://host/name", deliveries=3, insert=True, variant={"limit": 10})

    assert Job(**json.loads(as_json(job))) == job
    assert job.dsn == "postgresql://host/name"


def test_requests_are_signed_distinct_and_of_the_wanted_size() -> None:
    requests = Requests(3, 800)
    seen = set()
    for number in (1, 2, 3):
        head, _, body = (requests.take() or b"").partition(b"\r\n\r\n")
        assert len(body) == 800
        assert b"Content-Length: 800" in head
        assert json.loads(body)["id"] == requests.event_id(number)
        signature = head.rpartition(b" ")[2]
        assert signature.decode() == hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        assert verifies(signature, body)
        assert not verifies(signature, body + b" ")
        seen.add(body)

    assert len(seen) == 3
    assert requests.take() is None


def test_picture_has_a_panel_for_every_table_and_is_xml() -> None:
    tables = {
        "slots": [{"slots": 1, "per_second": 100.0}, {"slots": 2, "per_second": 250.0}],
        "held": [
            {"transaction": "open", "at_seconds": 0, "per_second": 9.0, "pending_mib": 1, "pending_index_mib": 1},
            {"transaction": "ended", "at_seconds": 5, "per_second": 9.5, "pending_mib": 2, "pending_index_mib": 1},
        ],
    }

    root = ElementTree.fromstring(draw(tables))

    words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "By slots of each of two processes" in words
    assert "250" in words
    assert "after" in words
