"""Dropbox. https://www.dropbox.com/developers/reference/webhooks"""

from __future__ import annotations

from typing import Any

from hookledger.errors import UnreadableBody
from hookledger.sources.describe import EACH_REQUEST, Family, Places, Provider, Scheme
from hookledger.sources.handshakes import dropbox_challenge
from hookledger.sources.reading import in_document


def _accounts(body: Any) -> list[Any]:
    """list_folder.accounts"""
    accounts = in_document(body, ("list_folder", "accounts"))
    if not isinstance(accounts, list):
        raise UnreadableBody("the body has no list of accounts at 'list_folder.accounts'")
    return [{"account": account} if isinstance(account, str) else account for account in accounts]


dropbox = Provider(
    name="dropbox",
    title="Dropbox",
    documentation="https://www.dropbox.com/developers/reference/webhooks",
    family=Family.BODY_HMAC,
    # The key is the secret of the app.
    schemes=Scheme((Places("X-Dropbox-Signature"),), separator=None),
    items=_accounts,
    event_id=EACH_REQUEST,
    event_type=None,
    resource="account",
    version=None,
    deleted=(),
    probe=dropbox_challenge,
    survives="""Nothing: the body names accounts in which something changed, in the same bytes each time. Every request
    is news, also when it is sent again.""",
    cautions="""An event only says that something changed: go on from your cursor with list_folder/continue. No
    timestamp is signed, so that whoever sees one request can send it again, which makes you look once more.""",
    unconfirmed=("The deadline of 10 seconds.",),
)
