"""X (Twitter), Account Activity. https://docs.x.com/x-api/account-activity/introduction"""

from __future__ import annotations

from typing import Any

from hookledger.errors import UnreadableBody
from hookledger.sources.describe import Family, OfItem, Places, Provider, Scheme
from hookledger.sources.handshakes import x_crc
from hookledger.sources.reading import in_document
from hookledger.storable import identifier

EVENTS = "_events"
KEYED = ("users", "apps")
FEW = 20
IDS = (("id_str",), ("id",), ("status", "id"))
TIMES = (("timestamp_ms",), ("created_timestamp",))


def _split(body: Any) -> list[Any]:
    """Each event in the form of a body that has it alone"""
    if not isinstance(body, dict):
        raise UnreadableBody("the body is JSON, but not an object")
    lists = {key: value for key, value in body.items() if key.endswith(EVENTS) and isinstance(value, list)}
    if not lists and isinstance(body.get("user_event"), dict):
        return [body]
    if not lists:
        raise UnreadableBody("the body has no list of events, such as 'tweet_create_events'")
    rest = {key: value for key, value in body.items() if key not in lists}
    return [
        {**_of(rest, item), key: [item]} if isinstance(item, dict) else item
        for key, items in lists.items()
        for item in items
    ]


def _of(rest: dict[str, Any], item: Any) -> dict[str, Any]:
    """What an event comes with, and of many users and apps those that it names: a thousand messages are not to carry a
    thousand users each."""
    keyed = [key for key in KEYED if isinstance(rest.get(key), dict) and len(rest[key]) > FEW]
    if not keyed:
        return rest
    named = _texts(item)
    return {**rest, **{key: {each: rest[key][each] for each in sorted(named & rest[key].keys())} for key in keyed}}


def _texts(item: Any) -> set[str]:
    """All texts in a document."""
    found: set[str] = set()
    left = [item]
    while left:
        part = left.pop()
        if isinstance(part, str):
            found.add(part)
        elif isinstance(part, dict | list):
            left.extend(part.values() if isinstance(part, dict) else part)
    return found


def _list(body: dict[str, Any]) -> str | None:
    return next((key for key, value in body.items() if key.endswith(EVENTS) and isinstance(value, list)), None)


def _first(body: dict[str, Any], paths: tuple[tuple[str, ...], ...]) -> Any:
    item = in_document(body, (_list(body) or "", "0"))
    return next((found for found in (in_document(item, path) for path in paths) if found is not None), None)


def _kind(body: dict[str, Any]) -> str:
    """the name of the list, without _events"""
    return (_list(body) or ".".join(["user_event", *list(body["user_event"])[:1]])).removesuffix(EVENTS)


def _event_id(body: dict[str, Any]) -> str | None:
    """for_user_id / kind / id"""
    # One post is news for each of the accounts that are subscribed to.
    subscriber, name = identifier(body.get("for_user_id")), identifier(_first(body, IDS))
    return f"{subscriber}/{_kind(body)}/{name}" if subscriber and name else None


def _subject(body: dict[str, Any]) -> Any:
    """id_str, else id, else status.id"""
    return _first(body, IDS)


def _time(body: dict[str, Any]) -> Any:
    """timestamp_ms, else created_timestamp"""
    return _first(body, TIMES)


x = Provider(
    name="x",
    title="X (Twitter)",
    documentation="https://docs.x.com/x-api/webhooks/introduction",
    family=Family.BODY_HMAC,
    # The key is the consumer secret of the app.
    schemes=Scheme(
        (Places("x-twitter-webhooks-signature"),),
        encoding="base64",
        prefixes=("sha256=",),
        separator=None,
        # The answer to a CRC is a signature that anybody can ask for; no token of a CRC begins like this.
        begins=b"{",
    ),
    items=_split,
    event_id=OfItem(_event_id),
    event_type=OfItem(_kind),
    resource=OfItem(_subject),
    version=OfItem(_time),
    version_unit="milliseconds",
    deleted=("tweet_delete",),
    probe=x_crc,
    survives="""The subscribed account, the kind of event and the id of the post, message or like are the same when a
    request is sent again. What has no id, such as a follow, is known by its bytes, which hold its time.""",
    cautions="No timestamp is signed. Each event is delivered in the form of a body that has it alone.",
    unconfirmed=("The form of the signature's header.", "The fields of the events.", "How often the CRC is repeated."),
)
