"""Why a request did not verify: the questions that a person asks next, tried out.

It costs many times what verifying does, so it runs for `hookledger verify`, and within bounds for the log.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hookledger.errors import Cause, NotVerified, Refused, SetupError, UnreadableBody
from hookledger.http import Request
from hookledger.sources.content_coding import as_signed
from hookledger.sources.reading import read_json
from hookledger.sources.settings import read_url
from hookledger.sources.source import Source, Verified

LARGEST_DIAGNOSED = 256 * 1024
"""Bytes of a body that is diagnosed for the log."""
EVERYBODYS = ("Authorization",)
"""Headers that say nothing of who the sender is."""
LARGEST_INFLATED = 1024 * 1024 * 1024
"""Bytes of a captured body once it is inflated."""
LARGEST_INDENTED = 16 * 1024
"""Bytes up to which indented forms are tried for the log: Python writes those slowly."""
SECONDS_BETWEEN = 1.0
"""Seconds between two diagnoses for the log."""
LONGEST = 0.02
"""Seconds that one of them may take; it runs where requests are answered."""


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
        found = _explained(source, request, now, error, largest)
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
            signed = as_signed(source.content_encoding, request, LARGEST_DIAGNOSED)
            deadline = self._clock() + LONGEST
            return _explained(source, signed, now, error, LARGEST_DIAGNOSED, lambda: self._clock() > deadline)
        except Exception:
            # What a sender sent may be anything; the refusal stands, and has been explained once already.
            return error


def _explained(
    source: Source,
    request: Request,
    now: float,
    error: NotVerified,
    largest: int | None,
    is_late: Callable[[], bool] = lambda: False,
) -> NotVerified:
    if error.cause is Cause.SIGNATURE_MISSING:
        return _other_provider(source, request) or error
    if error.cause is not Cause.NO_MATCH or source.needs_network:
        return error
    if largest is not None and len(request.body) > largest:
        return error
    for cause, how, body in _other_bodies(
        request.body, indented=largest is None or len(request.body) <= LARGEST_INDENTED
    ):
        if is_late():
            return error
        if body != request.body and _matches(source.verifier, replace(request, body=body), now):
            return NotVerified(f"the signature is that of another form of the body: {how}", cause, form=how)
    for how, verifier, other in _other_urls(source, request):
        if _matches(verifier, other, now):
            return NotVerified(f"the signature is that of another URL: {how}; correct url=", Cause.WRONG_URL, url=how)
    return NotVerified(
        "no secret of the source matches, and no other form of the body does: the secret is probably another one's, or "
        "the bytes were changed on the way",
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


def _other_bodies(body: bytes, *, indented: bool) -> Iterator[tuple[Cause, str, bytes]]:
    """What the sender may have signed, if something on the way changed the body into the one that came."""
    for how, other in (
        ("a newline at the end was lost", body + b"\n"),
        ("a CR LF at the end was lost", body + b"\r\n"),
        ("a line end was added", body.rstrip(b"\r\n")),
        ("CR LF became LF", body.replace(b"\n", b"\r\n")),
        ("LF became CR LF", body.replace(b"\r\n", b"\n")),
    ):
        yield Cause.LINE_END_CHANGED, how, other
    for how, other in _other_encodings(body):
        yield Cause.BODY_RESERIALISED, how, other
    try:
        document = read_json(body)
    except UnreadableBody:
        return
    for how, text in _serialised(document, indented=indented):
        encoded = text.encode("utf-8", "surrogatepass")
        yield Cause.BODY_RESERIALISED, how, encoded
        yield Cause.BODY_RESERIALISED, f"{how}, with a newline at the end", encoded + b"\n"


def _other_encodings(body: bytes) -> Iterator[tuple[str, bytes]]:
    yield "a byte order mark was lost", b"\xef\xbb\xbf" + body
    try:
        text = body.decode("utf-8")
        yield "bytes that were no UTF-8 were taken for Latin-1", text.encode("latin-1")
    except UnicodeError:
        pass


def _serialised(document: Any, *, indented: bool) -> Iterator[tuple[str, str]]:
    """The JSON of a document as other serialisers write it."""
    forms: list[tuple[str, dict[str, Any]]] = [
        ("compact JSON", {"separators": (",", ":")}),
        ("spaced JSON", {"separators": (", ", ": ")}),
    ]
    if indented:
        forms += [("JSON indented by two", {"indent": 2}), ("JSON indented by four", {"indent": 4})]
    try:
        for how, form in forms:
            for order in ("", ", its keys sorted"):
                text = json.dumps(document, ensure_ascii=False, sort_keys=bool(order), **form)
                yield how + order, text
                yield f"{how}{order}, with slashes escaped", text.replace("/", "\\/")
                yield f"{how}{order}, with <, > and & escaped", _escaped_html(text)
                escaped = json.dumps(document, sort_keys=bool(order), **form)
                if escaped != text:
                    yield f"{how}{order}, with escapes as \\u00e4", escaped
                    yield f"{how}{order}, with escapes as \\u00E4", _upper_escapes(escaped)
                    yield f"{how}{order}, with escapes as \\u00e4 and slashes escaped", escaped.replace("/", "\\/")
    except (RecursionError, ValueError):
        return


def _escaped_html(text: str) -> str:
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _upper_escapes(text: str) -> str:
    pieces = text.split("\\u")
    return pieces[0] + "".join("\\u" + piece[:4].upper() + piece[4:] for piece in pieces[1:])


def _other_urls(source: Source, request: Request) -> Iterator[tuple[str, Any, Request]]:
    """Verifiers with URLs that are easily mistaken for the right one."""
    verifier: Any = source.verifier
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


def _other_provider(source: Source, request: Request) -> NotVerified | None:
    """The refusal of a request that bears the signature of another provider."""
    from hookledger.sources.catalogue import providers

    others = []
    for provider in providers():
        found = any(header in request.headers for header in provider.signature_places if header not in EVERYBODYS)
        if found and provider.name == source.provider:
            return None  # something else of its own is missing
        if found:
            others.append(provider.title)
    if not others:
        return None
    named = " or ".join(others)
    return NotVerified(
        f"the request bears the signature of {named}: the URL of the source {source.name!r} was given to that provider",
        Cause.OTHER_PROVIDER,
        provider=named,
    )
