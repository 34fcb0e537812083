"""Telegram Bot API. https://core.telegram.org/bots/api#setwebhook"""

from __future__ import annotations

from typing import Any

from hookledger.sources.describe import Family, OfItem, Provider, SecretRules, shared_token
from hookledger.sources.reading import in_document


def _kind(update: Any) -> str | None:
    """The one key besides update_id."""
    kinds = [key for key in update if key != "update_id"] if isinstance(update, dict) else []
    return kinds[0] if len(kinds) == 1 else None


def _subject(update: Any) -> str | None:
    """Chat and message."""
    inner = update.get(_kind(update)) if isinstance(update, dict) else None
    chat, message = in_document(inner, ("chat", "id")), in_document(inner, ("message_id",))
    return f"{chat}/{message}" if isinstance(chat, int) and isinstance(message, int) else None


telegram = Provider(
    name="telegram",
    title="Telegram",
    documentation="https://core.telegram.org/bots/api#setwebhook",
    family=Family.TOKEN,
    schemes=shared_token("X-Telegram-Bot-Api-Secret-Token"),
    secret=SecretRules(pattern=r"[A-Za-z0-9_-]{1,256}", pattern_says="1 to 256 letters, digits, '_' and '-'"),
    event_id="update_id",
    event_type=OfItem(_kind),
    resource=OfItem(_subject),
    version="update_id",
    deleted=(),
    survives="update_id counts the updates of a bot and is the same when one is sent again.",
    cautions="Nothing is signed: whoever sees one request can send others.",
    unconfirmed=("After a week without updates update_id may go on from another number.",),
)
