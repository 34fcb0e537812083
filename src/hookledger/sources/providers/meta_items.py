"""The events in a request of Meta: what each is about.

Graph API has changes in entries; WhatsApp has lists of messages and statuses in a change; Messenger and Instagram have
lists of messaging events in an entry. Each event is made a body of its own: the one that Meta would have sent for it
alone, so that what surrounds it, such as the phone number that a message came to, is there.
https://developers.facebook.com/docs/graph-api/webhooks/getting-started#event-notifications
https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/overview
https://developers.facebook.com/documentation/business-messaging/messenger-platform/webhooks/webhook-events
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from hookledger.delivery import Delivery
from hookledger.errors import UnreadableBody
from hookledger.sources.items import written
from hookledger.sources.reading import in_document, moment

WHATSAPP = "whatsapp_business_account"
WHATSAPP_LISTS = ("messages", "statuses", "message_echoes", "calls", "errors")
CHANNELS = ("messaging", "standby")
SURROUNDINGS = ("sender", "recipient", "timestamp")
"""Keys of a messaging event that do not tell its kind."""
STATUSES = {"sent": 1, "delivered": 2, "read": 3, "played": 4, "failed": 5}
"""What follows what, for statuses of the same second."""
OBJECTS = ("id", "comment_id", "post_id", "leadgen_id", "message_template_id")
"""Where a change has the id of what it is about; the first counts."""
REACTIONS = ("reaction", "like")
FEW = 10
FIRST_MILLISECONDS = 10**11
"""Entries of Messenger have milliseconds where others have seconds."""


class Part(NamedTuple):
    """One event, with what surrounds it.

    Args:
        item: the event itself: a message, a status, a messaging event, a change.
        within: the list that it stood in: "messages", "messaging", "changes" ...
        entry, change: what it stood in; the change is empty for messaging events.
    """

    item: dict[str, Any]
    within: str
    entry: dict[str, Any]
    change: dict[str, Any]


def split(body: Any) -> Sequence[Any]:
    """A body for each event.

    Raises:
        UnreadableBody: if the body has no list of entries.
    """
    entries = body.get("entry") if isinstance(body, dict) else None
    if not isinstance(entries, list):
        raise UnreadableBody("the body has no list of events at 'entry'")
    return [{**body, "entry": [alone]} if isinstance(alone, dict) else alone for alone in _entries(body, entries)]


def _entries(body: dict[str, Any], entries: list[Any]) -> Iterator[Any]:
    """Every entry as often as it has events, each time with one of them; what cannot be read as it is."""
    for entry in entries:
        if not isinstance(entry, dict):
            yield entry
            continue
        bare = {name: value for name, value in entry.items() if name not in (*CHANNELS, "changes")}
        found = False
        for name in (*CHANNELS, "changes"):
            items = entry.get(name)
            for item in items if isinstance(items, list) else ():
                found = True
                for alone in _changes(body, item) if name == "changes" else (item,):
                    yield {**bare, name: [alone]} if isinstance(alone, dict) else alone
        if not found:
            yield entry  # a subscription without values has `changed_fields` alone


def _changes(body: dict[str, Any], change: Any) -> Iterator[Any]:
    """The change, with WhatsApp as often as it has events."""
    value = change.get("value") if isinstance(change, dict) and body.get("object") == WHATSAPP else None
    lists = [name for name in WHATSAPP_LISTS if isinstance(value, dict) and isinstance(value.get(name), list)]
    if not isinstance(value, dict) or not any(value[name] for name in lists):
        yield change
        return
    bare = {name: each for name, each in value.items() if name not in (*lists, "contacts")}
    contacts = _Contacts(value.get("contacts"))
    for name in lists:
        for item in value[name]:
            if isinstance(item, dict):
                yield {**change, "value": {**bare, **contacts.of(item), name: [item]}}
            else:
                yield item


class _Contacts:
    """The people of a change, by their ids: a thousand messages are not to carry a thousand people each."""

    def __init__(self, contacts: Any) -> None:
        self._all = contacts if isinstance(contacts, list) else []
        self._by_id: dict[str, Any] = {}
        for each in self._all:
            for name in ("wa_id", "user_id") if isinstance(each, dict) else ():
                if isinstance(each.get(name), str):
                    self._by_id[each[name]] = each

    def of(self, item: dict[str, Any]) -> dict[str, list[Any]]:
        """Whom the item is from or to; all, if it cannot be told and they are few."""
        ids = [item.get(name) for name in ("from", "from_user_id", "to", "recipient_id")]
        found = [self._by_id[each] for each in ids if isinstance(each, str) and each in self._by_id][:1]
        if not found and len(self._all) <= FEW:
            found = self._all
        return {"contacts": found} if found else {}


def part_of(body: Any) -> Part | None:
    """The one event of a body that `split` gave."""
    entry = in_document(body, ("entry", "0"))
    if not isinstance(entry, dict):
        return None
    for channel in CHANNELS:
        item = in_document(entry, (channel, "0"))
        if isinstance(item, dict):
            return Part(item, channel, entry, {})
    change = in_document(entry, ("changes", "0"))
    if not isinstance(change, dict):
        return Part({}, "changes", entry, {})
    if body.get("object") == WHATSAPP:
        for name in WHATSAPP_LISTS:
            item = in_document(change, ("value", name, "0"))
            if isinstance(item, dict):
                return Part(item, name, entry, change)
    value = change.get("value")
    return Part(value if isinstance(value, dict) else {}, "changes", entry, change)


def kind(body: Any) -> str | None:
    """object and field, WhatsApp's list or what a messaging event has."""
    part = part_of(body)
    what = body.get("object") if isinstance(body, dict) else None
    if part is None or not isinstance(what, str):
        return None
    if part.within in CHANNELS:
        standby = "standby." if part.within == "standby" else ""
        return f"{what}.{standby}{_happened(part.item)}".rstrip(".")
    field = part.change.get("field") if part.within == "changes" else part.within
    return f"{what}.{field}" if isinstance(field, str) and field else what


def _happened(item: dict[str, Any]) -> str:
    """The kind of a messaging event, as in "message", "message_echo", "read"."""
    name = next((name for name in item if name not in SURROUNDINGS), "")
    if name == "message":
        for mark, what in (("is_deleted", "message_deleted"), ("is_echo", "message_echo")):
            if in_document(item, ("message", mark)) is True:
                return what
    return name


def identity(body: Any) -> str | None:
    """message and what happened to it, else content."""
    part = part_of(body)
    if part is None:
        return None
    if part.within in CHANNELS:
        return _identity_of_messaging(part)
    number = _text(part.item.get("id"))
    if part.within in ("messages", "message_echoes"):
        return number
    if part.within == "statuses" and number is not None:
        about = [part.item.get(name) for name in ("recipient_id", "recipient_participant_id")]
        return "/".join([number, str(part.item.get("status")), *(each for each in about if isinstance(each, str))])
    return None  # the content, with the time of the entry


def _identity_of_messaging(part: Part) -> str:
    # Without the time of the entry: these have a time of their own.
    content = hashlib.sha256(written(part.item, sort=True)).hexdigest()[:32]
    happened = _happened(part.item)
    number = _text(in_document(part.item, (happened.partition("_")[0], "mid")))
    told = happened.startswith("message") and happened != "message_edit" and number is not None
    return f"{_text(part.entry.get('id'))}/{part.within}/{happened}/{number if told else content}"


def subject(body: Any) -> str | None:
    """message, else object that has changed."""
    part = part_of(body)
    if part is None:
        return None
    entry = _text(part.entry.get("id"))
    if part.within in CHANNELS:
        number = next(
            (_text(each["mid"]) for each in part.item.values() if isinstance(each, dict) and "mid" in each), None
        )
        return None if number is None or entry is None else f"{entry}/{number}"
    number = _text(part.item.get("id"))
    if part.within != "changes":
        # A message to a group has a status for each that it went to.
        whose = _text(part.item.get("recipient_participant_id"))
        return number if number is None or whose is None else f"{number}/{whose}"
    if part.item.get("item") in REACTIONS:
        return None  # its ids are those of what was reacted to
    about = next((found for found in (_text(part.item.get(name)) for name in OBJECTS) if found is not None), None)
    field = part.change.get("field")
    if about is None:
        return None if entry is None or not isinstance(field, str) else f"{entry}/{field}"
    return about


def version(body: Any) -> Any:
    """time of the event, and for statuses their order."""
    part = part_of(body)
    if part is None:
        return None
    at = part.item.get("timestamp") if part.within != "changes" else None
    at = _time(part.entry.get("time") if at is None else at)
    if at is None or part.within not in WHATSAPP_LISTS:
        return at
    status = part.item.get("status")
    return (at, STATUSES.get(status, 0) if isinstance(status, str) else 0)


def is_deletion(delivery: Delivery) -> bool:
    """Whether a message was unsent, or an object removed."""
    part = part_of(delivery.data)
    if part is None:
        return False
    if part.within in CHANNELS:
        return _happened(part.item) == "message_deleted"
    removed = part.within == "changes" and part.item.get("verb") in ("remove", "delete")
    return removed and part.item.get("item") not in REACTIONS


def _text(value: Any) -> str | None:
    """An id, which Meta writes as a text or a number."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**40:
        return str(value)
    return value if isinstance(value, str) and value.strip() else None


def _time(value: Any) -> Any:
    number = value
    if isinstance(value, str) and len(value) <= 20 and value.isascii() and value.isdigit():
        number = int(value)
    if isinstance(number, bool) or not isinstance(number, int | float):
        return None
    return moment(number, "milliseconds" if number >= FIRST_MILLISECONDS else "seconds")
