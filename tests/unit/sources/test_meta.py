"""Meta: one request, many events of WhatsApp, Messenger, Instagram and the Graph API."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from hookledger.delivery import Delivery, Event
from hookledger.errors import SetupError
from hookledger.http import Headers, Request
from hookledger.sources import meta
from hookledger.version import Version, read_version
from tests.unit.sources.made import deliveries

source = meta(secrets="app-secret", verify_token="typed-in")


def request(document: Any) -> Request:
    return Request("meta", "POST", Headers(), json.dumps(document).encode())


def read(document: Any) -> Sequence[Event]:
    return source.read(request(document))


def delivered(document: Any) -> list[Delivery]:
    return deliveries(source, request(document))


def version(event: Event) -> Version:
    found = read_version(event.version)
    assert found is not None
    return found


def whatsapp(**lists: Any) -> dict[str, Any]:
    value = {"messaging_product": "whatsapp", "metadata": {"phone_number_id": "106"}, **lists}
    return {"object": "whatsapp_business_account", "entry": [{"id": "102", "changes": [entry(value)]}]}


def entry(value: Any, field: str = "messages") -> dict[str, Any]:
    return {"field": field, "value": value}


def messenger(*items: Any, what: str = "page", channel: str = "messaging", time: int = 1458692752478) -> dict[str, Any]:
    return {"object": what, "entry": [{"id": "P1", "time": time, channel: list(items)}]}


def happened(**what: Any) -> dict[str, Any]:
    return {"sender": {"id": "U1"}, "recipient": {"id": "P1"}, "timestamp": 1458692752478, **what}


def feed(value: dict[str, Any], *, time: int = 1700000000, field: str = "feed") -> dict[str, Any]:
    return {"object": "page", "entry": [{"id": "P1", "time": time, "changes": [entry(value, field)]}]}


# The URL


def test_the_url_is_verified_by_the_token_that_was_typed_in() -> None:
    query = "hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token="
    asked = [Request("meta", "GET", Headers(), b"", query=query + token) for token in ("typed-in", "other", "")]
    right, wrong, none = [source.answer_probe(each) for each in asked]
    assert right is not None
    assert (right.status, right.body) == (200, b"1158201444")
    assert wrong is not None
    assert none is not None
    assert (wrong.status, wrong.body, none.status) == (403, b"", 403)


def test_a_source_without_a_verify_token_does_not_start() -> None:
    with pytest.raises(SetupError, match=r"the source 'meta' needs verify_token=\.\.\."):
        meta(secrets="app-secret")


# WhatsApp


def test_every_message_and_status_is_a_delivery_with_what_surrounds_it() -> None:
    people = [{"wa_id": str(number), "profile": {"name": f"n{number}"}} for number in range(20)]
    messages = [{"id": "wamid.A", "from": "7", "timestamp": "1749416383"}, {"id": "wamid.B", "from": "8"}]
    statuses = [{"id": "wamid.C", "status": "read", "recipient_id": "9", "timestamp": "1749416383"}]
    found = delivered(whatsapp(contacts=people, messages=messages, statuses=statuses))
    assert [each.event_id for each in found] == ["wamid.A", "wamid.B", "wamid.C/read/9"]
    assert [each.event_type.rpartition(".")[2] for each in found] == ["messages", "messages", "statuses"]
    value = found[0].data["entry"][0]["changes"][0]["value"]
    assert value == {
        "messaging_product": "whatsapp",
        "metadata": {"phone_number_id": "106"},
        "contacts": [people[7]],
        "messages": [messages[0]],
    }
    assert found[2].data["entry"][0]["changes"][0]["value"]["statuses"] == statuses


def test_people_who_cannot_be_told_are_kept_if_they_are_few() -> None:
    few = [{"wa_id": "1"}, {"wa_id": "2"}]
    (alone,) = delivered(whatsapp(contacts=few, messages=[{"id": "wamid.A", "from": "7"}]))
    assert alone.data["entry"][0]["changes"][0]["value"]["contacts"] == few


def test_the_statuses_of_a_message_share_its_resource_and_are_in_order_within_a_second() -> None:
    statuses = [
        {"id": "wamid.C", "status": status, "timestamp": "1750857384", "recipient_id": "9"}
        for status in ("sent", "delivered", "read")
    ]
    found = read(whatsapp(statuses=statuses))
    assert {each.resource for each in found} == {"wamid.C"}
    assert len({each.event_id for each in found}) == 3
    versions = [version(each) for each in found]
    assert versions == sorted(set(versions))
    (later,) = read(whatsapp(statuses=[{**statuses[0], "timestamp": "1750857385"}]))
    assert version(later) > versions[-1]


def test_a_message_to_a_group_has_a_status_for_each_that_it_went_to() -> None:
    status = {"id": "wamid.C", "status": "read", "timestamp": "1", "recipient_id": "G"}
    found = read(whatsapp(statuses=[{**status, "recipient_participant_id": each} for each in ("1", "2")]))
    assert [each.event_id for each in found] == ["wamid.C/read/G/1", "wamid.C/read/G/2"]
    assert [each.resource for each in found] == ["wamid.C/1", "wamid.C/2"]


def test_other_fields_of_whatsapp_are_changes() -> None:
    value = {"event": "APPROVED", "message_template_id": 594425479261596}
    document = {
        "object": "whatsapp_business_account",
        "entry": [{"id": "102", "time": 1751247548, "changes": [entry(value, "message_template_status_update")]}],
    }
    (event,) = read(document)
    assert event.event_type == "whatsapp_business_account.message_template_status_update"
    assert (event.event_id, event.resource) == (None, "594425479261596")


# Messenger and Instagram


def test_messages_echoes_edits_and_reactions_share_their_message_and_no_id() -> None:
    events = [
        happened(message={"mid": "m_1", "text": "hello"}),
        happened(message={"mid": "m_1", "text": "hello", "is_echo": True}),
        happened(message={"mid": "m_1", "is_deleted": True}),
        happened(message_edit={"mid": "m_1", "text": "hallo", "num_edit": 1}),
        happened(message_edit={"mid": "m_1", "text": "hullo", "num_edit": 2}),
        happened(reaction={"mid": "m_1", "action": "react"}),
        happened(reaction={"mid": "m_1", "action": "unreact"}),
    ]
    found = read(messenger(*events))
    assert [each.event_type for each in found] == [
        "page.message",
        "page.message_echo",
        "page.message_deleted",
        "page.message_edit",
        "page.message_edit",
        "page.reaction",
        "page.reaction",
    ]
    assert {each.resource for each in found} == {"P1/m_1"}
    assert len({each.event_id for each in found}) == len(events)
    assert [each.deleted for each in delivered(messenger(*events))] == [False, False, True] + 4 * [False]


def test_a_messaging_event_sent_again_in_another_request_is_the_same() -> None:
    receipt = happened(delivery={"mids": ["m_1"], "watermark": 1458668856253})
    first = read(messenger(receipt, time=1))[0]
    again = read(messenger(happened(message={"mid": "m_2"}), receipt, time=2))[1]
    assert (first.event_id, first.event_type) == (again.event_id, "page.delivery")
    assert first.event_id is not None


def test_what_another_app_has_is_told_apart_and_times_are_in_milliseconds() -> None:
    (event,) = read(messenger(happened(message={"mid": "m_1"}), what="instagram", channel="standby"))
    assert event.event_type == "instagram.standby.message"
    assert str(version(event)[0]) == "1458692752.478000"


# Graph API


def test_changes_without_an_id_are_known_by_their_content_and_time() -> None:
    first, again, later, other = [
        read(document)[0]
        for document in (feed({"a": 1}), feed({"a": 1}), feed({"a": 1}, time=1700000001), feed({"a": 2}))
    ]
    assert first.event_id is None
    assert first.content == again.content
    assert len({first.content, later.content, other.content}) == 3
    assert version(first) < version(later)


def test_several_entries_with_several_changes_are_that_many_events() -> None:
    changes = [entry({"id": str(number)}, "comments") for number in range(3)]
    document = {"object": "instagram", "entry": [{"id": "1", "changes": changes}, {"id": "2", "changes": changes[:1]}]}
    assert [each.resource for each in read(document)] == ["0", "1", "2", "0"]


def test_a_subscription_without_values_is_one_event_an_entry() -> None:
    (event,) = read({"object": "user", "entry": [{"id": "1", "uid": "1", "time": 5, "changed_fields": ["photos"]}]})
    assert (event.event_type, event.unreadable) == ("user", None)


def test_what_is_removed_is_deleted_but_not_by_a_reaction_that_is() -> None:
    post = {"item": "post", "post_id": "P1_2"}
    (added,), (removed,) = (delivered(feed({**post, "verb": verb})) for verb in ("add", "remove"))
    assert (added.resource, added.deleted) == (removed.resource, False)
    assert removed.deleted
    (unliked,) = delivered(feed({"item": "reaction", "post_id": "P1_2", "verb": "remove"}))
    assert (unliked.resource, unliked.deleted) == (None, False)


# What cannot be read


@pytest.mark.parametrize("document", [{}, {"entry": None}, {"entry": {}}, [], 5, {"object": "page"}])
def test_a_body_without_entries_is_one_unreadable_event(document: Any) -> None:
    (event,) = read(document)
    assert event.unreadable is not None
    assert event.unreadable.startswith("the body has no list of events at 'entry'")


def test_a_bad_item_is_alone() -> None:
    document = messenger(happened(message={"mid": "m_1"}), 5, happened(message={"mid": "m_2"}))
    document["entry"] += ["x", {"id": "2", "changes": [None]}]
    assert [each.unreadable is None for each in read(document)] == [True, False, True, False, False]
    mixed = whatsapp(messages=[{"id": "wamid.A"}, 7], statuses=[])
    assert [each.unreadable is None for each in read(mixed)] == [True, False]
