"""Why a request did not verify: the questions that a person asks next, tried out.

It costs many times what verifying does, so it runs for `hookledger verify`, and within bounds for the log.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hookledger.errors import Cause, NotVerified, Refused, SetupError
from hookledger.http import Request
from hookledger.sources.accounts import AccountVerifier
from hookledger.sources.body_forms import other_bodies
from hookledger.sources.content_coding import as_signed
from hookledger.sources.other_provider import OtherProviders
from hookledger.sources.settings import read_url
from hookledger.sources.source import Source, Verified

LARGEST_DIAGNOSED = 256 * 1024
"""Bytes of a body that is diagnosed for the log."""
LARGEST_INFLATED = 1024 * 1024 * 1024
"""Bytes of a captured body once it is inflated."""
LARGEST_INDENTED = 16 * 1024
"""Bytes up to which indented forms are tried for the log: Python writes those slowly."""
SECONDS_BETWEEN = 1.0
"""Seconds between two diagnoses for the log."""
LONGEST = 0.02
"""Seconds that one of them may take; it runs where requests are answered."""


_ADVICE = {
    Cause.BODY_RESERIALISED: "; something on the way parsed and rewrote it: pass the raw bytes on, not request.json "
    "dumped again",
}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What can be said of a request.

    Args:
        verified: whether it verifies as it is.
        says: the same for people, as a sentence.
        cause: why it does not; None if it does.
        details: what belongs to the cause.
        secret: which of the secrets signed it, counted from 0; None where none did.
        account: whose it is.
    """

    verified: bool
    says: str
    cause: Cause | None = None
    details: Mapping[str, str | int | float] = field(default_factory=dict)
    secret: int | None = None
    account: str | None = None


def diagnose(source: Source, request: Request, now: float, *, largest: int | None = None) -> Diagnosis:
    """Verify a request, and find out why it does not verify.

    Args:
        source: it is tried against.
        request: as it was captured.
        now: Unix time in seconds at which it came.
        largest: bytes of a body up to which other forms of it are tried; None for any.

    Raises:
        Refused: other than NotVerified, e.g. if the keys of the provider cannot be had.
    """
    request = as_signed(source.content_encoding, request, LARGEST_INFLATED)
    try:
        verified = source.verifier.verify(request, now) or Verified()
    except NotVerified as error:
        found = _Questions(source, request, now, _known(), largest).explain(error)
        return Diagnosis(False, str(found), found.cause, found.details)
    if verified.secret == 0:
        said = "the request verifies"
    else:
        said = (
            f"the request verifies with secret {verified.secret + 1}: if that is the previous one, the provider still "
            "signs with it"
        )
    return Diagnosis(True, said, secret=verified.secret, account=verified.account)


class LogDiagnosis:
    """Diagnoses refused requests for the log, as many as cost nothing that matters.

    Args:
        seconds_between: two diagnoses.
        clock: seconds that only grow.
    """

    def __init__(self, seconds_between: float = SECONDS_BETWEEN, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds_between = seconds_between
        self._clock = clock
        self._next = float("-inf")
        self._lock = threading.Lock()
        self._known: OtherProviders | None = None

    def explain(self, source: Source, request: Request, now: float, error: NotVerified) -> NotVerified:
        """The same refusal, with the cause that was found if there was time to look for it.

        Args:
            source, request, now: as they were verified.
            error: what the verifier said.
        """
        with self._lock:
            if self._clock() < self._next:
                return error
            self._next = self._clock() + self._seconds_between
        try:
            if self._known is None:
                self._known = _known()  # once, as it imports every provider
            signed = as_signed(source.content_encoding, request, LARGEST_DIAGNOSED)
            deadline = self._clock() + LONGEST
            questions = _Questions(
                source, signed, now, self._known, LARGEST_DIAGNOSED, LARGEST_INDENTED, lambda: self._clock() > deadline
            )
            return questions.explain(error)
        except Exception:
            # What a sender sent may be anything; the refusal stands, and has been explained once already.
            return error


def _known() -> OtherProviders:
    from hookledger.sources.catalogue import providers

    return OtherProviders(providers())


@dataclass(frozen=True, slots=True)
class _Questions:
    """What is tried out on one request.

    Args:
        source, request, now: as they were verified.
        known: the other providers.
        largest, largest_indented: bytes of a body up to which other forms, and indented ones, are tried; None for any.
        is_late: whether to give up.
    """

    source: Source
    request: Request
    now: float
    known: OtherProviders
    largest: int | None = None
    largest_indented: int | None = None
    is_late: Callable[[], bool] = lambda: False

    def explain(self, error: NotVerified) -> NotVerified:
        """The refusal with the cause that was found, or as it is."""
        if error.cause in (Cause.SIGNATURE_MISSING, Cause.SIGNATURE_MALFORMED):
            return self.known.by_headers(self.source, self.request) or error
        if error.cause is Cause.CLOCK:
            said = f"the signature matches, but {error}: a clock is off, or the request is an old one"
            return NotVerified(said, Cause.CLOCK, **error.details)
        if error.cause is not Cause.NO_MATCH or (self.largest is not None and len(self.request.body) > self.largest):
            return error
        verifier: Any = self.source.verifier
        if isinstance(verifier, AccountVerifier):
            verifier = verifier.verifier_of(self.request)[1]
        return error if getattr(verifier, "needs_network", False) else self._look(verifier, error)

    def _look(self, verifier: Any, error: NotVerified) -> NotVerified:
        body = self.request.body
        indented = self.largest_indented is None or len(body) <= self.largest_indented
        for cause, how, other in other_bodies(body, indented=indented):
            if self.is_late():
                return error
            if other != body and _matches(verifier, replace(self.request, body=other), self.now):
                said = f"the signature is that of another form of the body: {how}"
                return NotVerified(said + _ADVICE.get(cause, ""), cause, form=how)
        for how, there, moved in _other_urls(self.source, verifier, self.request):
            if _matches(there, moved, self.now):
                said = f"the signature is that of another URL: {how}; correct url="
                return NotVerified(said, Cause.WRONG_URL, url=how)
        return self.known.by_scheme(self.source, verifier, self.request, self.now) or NotVerified(
            "no secret of the source matches, and no other form of the body that was tried does: the secret is "
            "probably another one's, or the body was changed, or re-serialised from a form that cannot be guessed",
            Cause.WRONG_SECRET,
            **error.details,
        )


def _matches(verifier: Any, request: Request, now: float) -> bool:
    """Whether a signature matches; its time may be over."""
    try:
        verifier.verify(request, now)
    except NotVerified as error:
        return error.cause is Cause.CLOCK
    except (Refused, SetupError):
        return False
    return True


def _other_urls(source: Source, verifier: Any, request: Request) -> Iterator[tuple[str, Any, Request]]:
    """Verifiers with URLs that are easily mistaken for the right one."""
    url = getattr(verifier, "url", None)
    if url is None or not hasattr(verifier, "with_url"):
        return
    bare = url.partition("?")[0]
    query = f"?{request.query}" if request.query else ""
    swapped = (
        url.replace("https://", "http://", 1) if url.startswith("https://") else url.replace("http://", "https://", 1)
    )
    candidates = [bare, bare + query, bare.rstrip("/"), bare.rstrip("/") + "/", swapped, request.url]
    for candidate in dict.fromkeys(each for each in candidates if each != url):
        try:
            read_url(source.name, candidate)
        except SetupError:
            continue
        yield candidate, verifier.with_url(candidate), replace(request, query="")
