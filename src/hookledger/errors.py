"""Everything hookledger raises, in one tree. Each class says what to do about it.

HookledgerError
├── SetupError                    wrong configuration, told at start
│   ├── SecretError               a secret is empty, blank or wrongly spelled
│   ├── DatabaseNotGiven          neither an argument nor DATABASE_URL names one
│   ├── DatabaseUnreachable       no server answers at the given URL
│   └── SchemaError               the ledger's schema is missing, older or newer than the code
├── Refused                       a request that does not get in; carries the HTTP status
│   ├── NotVerified               401: signature, timestamp or token is wrong
│   ├── NotUnderstood             400: the request is malformed before any verification
│   ├── UnknownSource             404: no source of that name
│   ├── BodyTooLarge              413: body over the limit
│   ├── UnsupportedEncoding       415: a Content-Encoding the source does not take
│   └── Unavailable               503: database away, line full; the sender tries again
│       └── KeysUnavailable       503: the provider's key server does not answer
├── ClientGone                    the sender broke off in the middle of the body
├── BodyConsumed                  something before the receiver has read the body
├── UnreadableBody                the body verified, but is not what the source sends
├── UncomparableVersion           a version that is no number, time, or tuple of them
├── HandlerError                  what a handler did wrong to the open transaction
│   ├── TransactionEnded          it committed, rolled back or closed the transaction
│   └── ErrorSwallowed            it caught a database error and went on
├── ReplayError                   a replay cannot be begun, resumed or stopped as it stands
├── Retry                         raised by a handler: try again later
└── Reject                        raised by a handler: give up on this delivery
"""

from __future__ import annotations

import enum
from datetime import timedelta


class HookledgerError(Exception):
    """Any error of hookledger. Catch it to tell ours from yours."""


class SetupError(HookledgerError):
    """The application is configured wrongly. The message says what to change; nothing was started."""


class SecretError(SetupError):
    """A secret is empty, blank or wrongly spelled. Give the source the secret as the provider shows it."""


class DatabaseNotGiven(SetupError):
    """No URL of a database is given. Set DATABASE_URL."""


class DatabaseUnreachable(SetupError):
    """No PostgreSQL answers at the URL. Start the server or correct DATABASE_URL."""


class SchemaError(SetupError):
    """The schema is missing, older or newer than the code. Run `hookledger db upgrade`, or update the code."""


class Refused(HookledgerError):
    """A request that is not let in. The sender sees `status` and an empty reason; the log has the message."""

    status: int = 400
    retry_after: int | None = None


class Cause(enum.Enum):
    """Why a request did not verify, for programs; the message of `NotVerified` says it to people.

    A verifier gives those of the first part. Those of the second are found by `hookledger.sources.diagnosis`.
    """

    OTHER = "other"
    SIGNATURE_MISSING = "signature-missing"
    SIGNATURE_MALFORMED = "signature-malformed"
    NO_MATCH = "no-match"
    BODY_CHANGED = "body-changed"
    CLOCK = "clock"
    TIMESTAMP_MALFORMED = "timestamp-malformed"
    UNKNOWN_ACCOUNT = "unknown-account"
    KEY_NOT_TRUSTED = "key-not-trusted"

    WRONG_SECRET = "wrong-secret"  # noqa: S105
    WRONG_URL = "wrong-url"
    BODY_RESERIALISED = "body-reserialised"
    LINE_END_CHANGED = "line-end-changed"
    OTHER_PROVIDER = "other-provider"


class NotVerified(Refused):
    """The signature, token or timestamp is wrong. Check the secret of the source against the provider's.

    Args:
        message: for the log; it holds neither a secret nor the right signature.
        cause: the same for programs.
        details: what belongs to the cause, e.g. `clock_offset` in seconds, or the name of the `header`.
    """

    status = 401

    def __init__(
        self, message: str = "the request does not verify", cause: Cause = Cause.OTHER, **details: str | int | float
    ) -> None:
        super().__init__(message)
        self.cause = cause
        self.details = details


class NotUnderstood(Refused):
    """The request is malformed in a way that no verification could mend."""

    status = 400


class UnknownSource(Refused):
    """No source of that name is in the inbox. Check the URL that was given to the provider."""

    status = 404


class BodyTooSlow(Refused):
    """The body did not come within the receiver's time. The sender tries again; raise `body_timeout` if it
    is always that slow."""

    status = 408


class BodyTooLarge(Refused):
    """The body is over the receiver's limit. Raise `max_body_bytes` if the provider really sends as much."""

    status = 413


class UnsupportedEncoding(Refused):
    """The body comes in a Content-Encoding that the source was not told to take."""

    status = 415


class Unavailable(Refused):
    """The event could not be committed in time. Nothing was acknowledged; the sender is told to come again."""

    status = 503
    retry_after = 5


class KeysUnavailable(Unavailable):
    """The provider's keys could not be fetched in time, so nothing can be verified. The sender tries again; if it
    lasts, let the receiver reach the provider's key server over https."""


class ClientGone(HookledgerError):
    """The sender closed the connection before the whole body had come. Nothing was stored; it will retry."""


class BodyConsumed(HookledgerError):
    """Something in front of the receiver has read the body. Mount the receiver before that middleware, or
    let the middleware hand the body on unchanged."""


class UnreadableBody(HookledgerError):
    """The body is not what this source sends (not JSON, nested too deep ...). The exact bytes are kept."""


class UncomparableVersion(HookledgerError):
    """A version must be a number, a time, or a tuple of them. Give the handler a `version=` function."""


class HandlerError(HookledgerError):
    """A handler misused the transaction it was given. Its writes were rolled back."""


class TransactionEnded(HandlerError):
    """The handler committed, rolled back or closed the transaction. Leave that to hookledger; for a part
    that may fail, use `tx.begin_nested()`."""


class ErrorSwallowed(HandlerError):
    """The handler caught a database error and returned. PostgreSQL has already given up the handler's
    writes; wrap the statement that may fail in `tx.begin_nested()`."""


class ReplayError(HookledgerError):
    """A replay cannot be begun, resumed or stopped: another one is at it, or it has ended. The message says which."""


class Retry(HookledgerError):
    """Raise it in a handler to have the delivery tried again.

    Args:
        reason: shown in the failure's record.
        after: how long to wait, in seconds or as a timedelta; None takes the handler's retry policy.
    """

    def __init__(
        self, reason: str = "the handler asked for a retry", *, after: float | timedelta | None = None
    ) -> None:
        super().__init__(reason)
        self.after: float | None = after.total_seconds() if isinstance(after, timedelta) else after


class Reject(HookledgerError):
    """Raise it in a handler to give up on the delivery at once: it becomes a dead letter `rejected`.

    Args:
        reason: shown in the dead letter.
    """

    def __init__(self, reason: str = "the handler rejected the delivery") -> None:
        super().__init__(reason)
