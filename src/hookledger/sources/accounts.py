"""One source, many accounts: secrets as a function of the request.

An account is a part of the keys of its events: the event id and the resource begin with the account and a colon
(`acme.myshopify.com:evt_1`), so that equal ids of two accounts are two events. The account's name holds no colon, so
everything before the first one is the account.
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache

from hookledger.errors import Cause, NotVerified, Refused, SecretError, Unavailable
from hookledger.http import Request
from hookledger.sources.secrets import Secrets
from hookledger.sources.source import Verified, Verifier

logger = logging.getLogger(__name__)

MOST_KEPT = 1000
"""Accounts whose keys are kept ready."""
_ACCOUNT = re.compile(r"[^\s:\x00-\x1f\x7f]{1,100}")


@dataclass(frozen=True, slots=True)
class Account:
    """Whose request it is, and the secrets that may have signed it.

    Args:
        name: it becomes a part of the ledger's keys: 100 characters at the most, without white space and colons.
        secrets: as for any source.
    """

    name: str
    secrets: Secrets = field(repr=False)


SecretsOf = Callable[[Request], Account | Secrets | None]
"""Finds the secrets of a request that is not verified yet: by its query, its headers, or its body.

It gives the account with its secrets, or the secrets alone where there is just one account; None for an account that
is not known, which is answered with 401. If it raises, the answer is 503 and the sender comes again. The receiver calls
it in a thread, so it may ask a database; it is not an async function.
"""


def keyed(account: str | None, key: str) -> str:
    """An event id or a resource as the ledger keeps it."""
    return key if account is None else f"{account}:{key}"


class AccountVerifier:
    """Verifies a request with the secrets that a function gives for it.

    Args:
        source: the name of the source, for messages.
        secrets_of: the function.
        verifier: makes the verifier of given secrets.

    Raises:
        SecretError: for an async function.
    """

    needs_network = True

    def __init__(self, source: str, secrets_of: SecretsOf, verifier: Callable[[Secrets], Verifier]) -> None:
        called = secrets_of if inspect.isroutine(secrets_of) else type(secrets_of).__call__
        if inspect.iscoroutinefunction(called):
            raise SecretError(
                f"the source {source!r}: secrets is an async function; write it as a plain one, as it is called in a "
                "thread"
            )
        self._source = source
        self._secrets_of = secrets_of
        self._kept = lru_cache(maxsize=MOST_KEPT)(verifier)

    def verify(self, request: Request, now: float) -> Verified:
        """Return if the request verifies with the secrets of its account.

        Raises:
            NotVerified: for an unknown account too.
            Unavailable: if the secrets cannot be had.
        """
        name, verifier = self.verifier_of(request)
        verified = verifier.verify(request, now) or Verified()
        return verified if name is None else replace(verified, account=name)

    def verifier_of(self, request: Request) -> tuple[str | None, Verifier]:
        """The account of a request, and the verifier with its secrets."""
        try:
            found = self._secrets_of(request)
        except Refused:
            raise
        except Exception as error:
            logger.exception("the secrets of a request to %s could not be had", self._source)
            raise Unavailable(f"secrets= raised {type(error).__name__}; the traceback is in the log") from None
        if found is None:
            raise NotVerified("the request is of an account that is not known", Cause.UNKNOWN_ACCOUNT)
        account = found if isinstance(found, Account) else None
        secrets = found.secrets if isinstance(found, Account) else found
        if account is not None and (not isinstance(account.name, str) or not _ACCOUNT.fullmatch(account.name)):
            raise Unavailable(
                "secrets= gave an account whose name has white space, a colon, or more than 100 characters"
            )
        try:
            # A list cannot be looked up.
            kept = tuple(secrets) if isinstance(secrets, list) else secrets
            return None if account is None else account.name, self._kept(kept)
        except (SecretError, TypeError) as error:
            raise Unavailable(f"secrets= gave what is no secret: {error}") from None
