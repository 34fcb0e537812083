"""One request, many events: items of their own, and a bad one that spoils no other (D5, B027)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hookledger.errors import SetupError, UnreadableBody
from hookledger.http import Headers, Request
from hookledger.sources import x
from hookledger.sources.event_reader import EventReader
from hookledger.sources.fields import OfItem, ProviderField, joined
from hookledger.sources.items import ItemPaths, Split
from hookledger.sources.source import Source
from tests.unit.sources.made import deliveries


def reader(items: str | tuple[str, ...] | Split = "events", **fields: Any) -> EventReader:
    given: dict[str, ProviderField | None] = {"event_id": "id", "event_type": "type", "resource": "r", "version": None}
    return EventReader("json", items=items, **{**given, **fields})


def request(document: Any, *headers: tuple[str, str]) -> Request:
    return Request(
        "s", "POST", Headers(headers), document if isinstance(document, bytes) else json.dumps(document).encode()
    )


def ids(found: EventReader, document: Any) -> list[str | None]:
    return [event.event_id for event in found.read(request(document))]


def test_items_are_found_at_the_top_under_a_path_and_in_lists_of_lists() -> None:
    assert ids(reader(""), [{"id": "a"}, {"id": "b"}]) == ["a", "b"]
    assert ids(reader("data.events"), {"data": {"events": [{"id": "a"}]}}) == ["a"]
    nested = {"entry": [{"changes": [{"id": "a"}, {"id": "b"}]}, {"other": 1}, {"changes": [{"id": "c"}]}]}
    assert ids(reader("entry.*.changes"), nested) == ["a", "b", "c"]
    deeper = {"entry": [{"changes": [{"value": {"messages": [{"id": "a"}]}}, {"value": {"statuses": [{"id": "b"}]}}]}]}
    both = ("entry.*.changes.*.value.messages", "entry.*.changes.*.value.statuses")
    assert ids(reader(both), deeper) == ["a", "b"]


def test_a_single_object_where_a_list_is_usual_is_one_item() -> None:
    assert ids(reader(""), {"id": "a"}) == ["a"]


def test_a_function_can_give_the_items_where_no_path_leads_to_them() -> None:
    def split(document: Any) -> list[Any]:
        if "events" not in document:
            raise UnreadableBody("no events")
        return [{"id": each, "all": len(document["events"])} for each in document["events"]]

    found = reader(split, resource="root:about")
    events = found.read(request({"about": "r-1", "events": ["a", "b"]}))
    assert [(event.event_id, event.resource) for event in events] == [("a", "r-1"), ("b", "r-1")]
    assert len({event.content for event in events}) == 2
    assert ItemPaths(split).document(b'{"events": ["a", "b"]}', 1) == {"id": "b", "all": 2}
    assert [event.unreadable for event in found.read(request({}))] == ["no events"]


def test_an_empty_batch_has_no_events() -> None:
    assert reader().read(request({"events": []})) == []
    assert reader("").read(request([])) == []


@pytest.mark.parametrize("document", [{}, {"events": None}, {"events": {}}, {"events": "x"}, [], 5, b"", b"\xff"])
def test_a_body_without_the_list_is_one_unreadable_event(document: Any) -> None:
    (event,) = reader().read(request(document))
    assert event.unreadable is not None
    assert event.content is None


def test_a_bad_item_is_unreadable_alone() -> None:
    events = reader().read(request({"events": [{"id": "a"}, 5, None, [], {"id": "b"}]}))
    assert [event.unreadable is None for event in events] == [True, False, False, False, True]
    assert events[1].unreadable == "item 1 of the body is no object"
    assert len({event.content for event in events}) == 5
    entry = reader("entry.*.changes").read(request({"entry": [{"changes": [{"id": "a"}]}, 7, {"changes": 8}]}))
    assert [event.event_id for event in entry] == ["a", None, None]
    assert [event.unreadable is None for event in entry] == [True, False, False]


def test_an_item_that_a_function_trips_over_is_unreadable_alone() -> None:
    found = reader(resource=OfItem(lambda item: item["must"]))
    events = found.read(request({"events": [{"id": "a", "must": "x"}, {"id": "b"}]}))
    assert (events[0].resource, events[0].unreadable) == ("x", None)
    assert events[1].event_id == "b"
    assert events[1].unreadable == "the function resource= raised KeyError: 'must'"


def test_the_bytes_of_an_item_are_the_same_however_its_keys_are_ordered() -> None:
    first = reader().read(request({"events": [{"id": "a", "x": {"p": 1, "q": 2.5}}]}))
    again = reader().read(request(b'{"n": 2, "events": [ {"x":{"q":2.5,"p":1}, "id":"a"} ]}'))
    assert first[0].content == again[0].content
    other = reader().read(request({"events": [{"id": "a", "x": {"p": 1, "q": 2.50001}}]}))
    assert first[0].content != other[0].content


def test_b027_overlapping_batches_have_the_same_ids() -> None:
    first, second, third = ({"id": name} for name in ("e1", "e2", "e3"))
    found = [ids(reader(""), each) for each in ([first, second], [second, third], [first, second, third])]
    assert found == [["e1", "e2"], ["e2", "e3"], ["e1", "e2", "e3"]]


def test_fields_lead_into_the_item_the_list_s_object_and_the_whole_body() -> None:
    found = reader(
        "entry.*.changes",
        event_id=joined("outer:id", "id"),
        event_type=joined("root:object", "field", by="."),
        resource="header:X-R",
        version="outer:time",
        version_unit="seconds",
    )
    document = {"object": "page", "entry": [{"id": "p1", "time": 5, "changes": [{"id": "a", "field": "feed"}]}]}
    (event,) = found.read(request(document, ("x-r", "r1")))
    assert (event.event_id, event.event_type, event.resource) == ("p1/a", "page.feed", "r1")
    assert event.version.timestamp() == 5


def test_a_handler_gets_its_item_anew_each_time() -> None:
    found = reader()
    body = {"events": [{"id": "a", "z": 1, "b": 2}, {"id": "b"}]}
    source = Source("s", "s", None, found.read, found.document, lambda delivery: False)  # type: ignore[arg-type]
    first, second = deliveries(source, request(body))
    assert (first.data, second.data) == (body["events"][0], body["events"][1])
    assert list(first.data) == ["id", "z", "b"]
    first.data["spoilt"] = True
    (again, _) = deliveries(source, request(body))
    assert again.data == body["events"][0]


def test_an_item_that_is_not_there_is_told() -> None:
    with pytest.raises(UnreadableBody, match="no item 2: it holds 1"):
        ItemPaths("events").document(b'{"events":[{}]}', 2)
    with pytest.raises(UnreadableBody, match="not JSON"):
        ItemPaths("events").document(b"{", 0)


@pytest.mark.parametrize("items", ["a..b", ".", "a.*", "*", None, 5, ()])
def test_a_path_that_leads_to_no_list_is_told_at_start(items: Any) -> None:
    with pytest.raises(SetupError):
        ItemPaths(items)


# Fields put together from others


def one(field: ProviderField, document: Any, *headers: tuple[str, str]) -> str | None:
    found = EventReader("json", event_id=field, event_type=None, resource=None, version=None)
    return found.read(request(document, *headers))[0].event_id


def test_joined_fields_tell_events_apart_whatever_is_in_them() -> None:
    both = joined("a", "b")
    documents = [{"a": "x/y", "b": "z"}, {"a": "x", "b": "y/z"}, {"a": "x%2Fy", "b": "z"}, {"a": "x", "b": "y%2Fz"}]
    assert len({one(both, document) for document in documents}) == 4
    assert one(both, {"a": 5, "b": True}) == "5/true"
    assert one(both, {"a": 1.5, "b": False}) == "1.5/false"
    assert one(both, {"a": 0, "b": 0}) == "0/0"


@pytest.mark.parametrize(
    "document", [{"a": "x"}, {"b": "x"}, {"a": "", "b": "x"}, {"a": {}, "b": "x"}, {"a": None, "b": 1}]
)
def test_a_joined_field_without_one_of_its_parts_is_none(document: Any) -> None:
    assert one(joined("a", "b"), document) is None


def test_parts_that_may_be_missing_leave_their_place_empty() -> None:
    optional = joined("a", "b?", "c?")
    assert one(optional, {"a": "x"}) == "x"
    assert one(optional, {"a": "x", "c": "z"}) == "x//z"
    assert one(optional, {"a": "x", "b": "y"}) == "x/y"
    assert one(joined("a?", "b?"), {}) is None


def test_the_first_alternative_that_is_there_counts() -> None:
    either = ("a", joined("b", "c"), "header:X-Id")
    assert one(either, {"a": "1", "b": "2"}) == "1"
    assert one(either, {"a": "", "b": "2", "c": "3"}) == "2/3"
    assert one(either, {"b": "2"}, ("X-Id", "h")) == "h"
    assert one(either, {}) is None


def test_a_field_of_the_query() -> None:
    found = EventReader("json", event_id="query:id", event_type=None, resource=None, version=None)
    for query, expected in (("id=a+b&id=c", "a b"), ("x=1", None), ("id=", None), ("&" * 5000, None)):
        assert found.read(Request("s", "POST", Headers(), b"{}", query=query))[0].event_id == expected


@pytest.mark.parametrize(
    "field", [(), joined(), joined("a", by=""), "", "a..b", "query:", ("a", ""), joined("header:")]
)
def test_a_field_that_could_not_be_read_is_told_at_start(field: Any) -> None:
    with pytest.raises(SetupError, match="event_id="):
        one(field, {})


def test_a_body_that_may_be_json_or_a_form_goes_by_its_content_type() -> None:
    found = EventReader(
        "json-or-form", event_id=("event_id", "trigger_id"), event_type="t", resource=None, version=None
    )
    form = ("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")

    def event_id(body: bytes, *headers: tuple[str, str]) -> str | None:
        return found.read(request(body, *headers))[0].event_id

    assert event_id(b'{"event_id":"a"}', ("Content-Type", "application/json")) == "a"
    assert event_id(b"trigger_id=b&t=x", form) == "b"
    assert event_id(b"payload=%7B%22trigger_id%22%3A%22c%22%7D", form) == "c"
    assert found.read(request(b"payload=%7B", form))[0].unreadable is not None
    assert found.read(request(b"trigger_id=b&t=x"))[0].unreadable is not None


def test_a_message_of_x_comes_with_the_users_that_it_names() -> None:
    def message(number: int) -> dict[str, Any]:
        return {"id": f"m{number}", "message_create": {"sender_id": f"u{number}", "target": {"recipient_id": "me"}}}

    users = {**{f"u{number}": {"name": "a" * 100} for number in range(1000)}, "me": {}}
    document = {
        "for_user_id": "me",
        "direct_message_events": [message(number) for number in range(1000)],
        "users": users,
        "apps": 1,
    }
    source = x(secrets="k-test-1")
    request = Request("x", "POST", Headers(), json.dumps(document).encode())
    read = deliveries(source, request)
    assert len(read) == 1000
    assert read[7].data == {
        "for_user_id": "me",
        "direct_message_events": [message(7)],
        "users": {"u7": {"name": "a" * 100}, "me": {}},
        "apps": 1,
    }
