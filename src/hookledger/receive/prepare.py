"""From requests to what is to be recorded or answered at once: verified first, then read, each with its errors (D3)."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace

from hookledger.errors import BodyConsumed, BodyTooLarge, ClientGone, HookledgerError, NotVerified, Refused
from hookledger.http import Request, Response
from hookledger.inbox import Inbox
from hookledger.receive.accept import Accepted, Genuine, Readable, read, to_record, verify
from hookledger.receive.observer import Observer
from hookledger.receive.quarantine import Keeper, sized
from hookledger.receive.refusals import RefusalLog
from hookledger.receive.settings import IntakeSettings
from hookledger.sources.diagnosis import LogDiagnosis
from hookledger.sources.source import Source

# All that a receiver tells is told under one name.
logger = logging.getLogger("hookledger.receive.intake")

PROBES = frozenset({"GET", "HEAD", "OPTIONS"})
ALLOWED = ("allow", "POST, GET, HEAD, OPTIONS")


class Preparation:
    """Prepares the requests of one receiver.

    Args:
        inbox: the sources that may send.
        settings: bounds.
        observer: is told of what is refused.
        keeper: takes what is refused into quarantine.
    """

    def __init__(
        self, inbox: Inbox, settings: IntakeSettings, observer: Observer | None = None, keeper: Keeper | None = None
    ) -> None:
        self._inbox = inbox
        self._keeper = keeper
        self._settings = settings
        self._observer = observer
        self._refusals = RefusalLog(logger, frozenset(inbox.sources))
        self._diagnosis = LogDiagnosis()

    def prepare(self, requests: Sequence[Request]) -> list[Accepted | Response]:
        """What is to be recorded, or the answer, for each request in turn; nothing that a sender sends raises."""
        now = time.time()
        verified = [self._verify(request, now) for request in requests]
        readable = [self._read(each) if isinstance(each, Genuine) else each for each in verified]
        return [self._to_record(each) if isinstance(each, Readable) else each for each in readable]

    def answer(self, error: HookledgerError, *, source: str, request: Request | None = None) -> Response:
        """The response to a request that was refused. The sender learns the status, the log the reason.

        Args:
            error: why.
            source: as it was named.
            request: it, or its head, to be kept in quarantine if that is wanted.
        """
        response = self._answer(error, source)
        if self._keeper is not None and request is not None and isinstance(error, Refused):
            self._keeper.offer(request, response.status, error, sized(error, request))
        if self._observer is not None and not isinstance(error, ClientGone):
            self._observer.refused(source, response.status, str(error))
        return response

    def unavailable(self) -> Response:
        """The answer that lets a sender come again."""
        headers = (("content-type", "text/plain; charset=utf-8"), ("retry-after", str(self._settings.retry_after)))
        return Response(503, headers=headers)

    def _answer(self, error: HookledgerError, source: str) -> Response:
        extra = {"source": source[:100]}
        if isinstance(error, BodyConsumed):
            logger.error("a request to %r could not be read: %s", source[:100], error, extra=extra)
            return Response(500, str(error).encode())
        if isinstance(error, ClientGone):
            logger.info("the sender to %r broke off; nothing was stored: %s", source[:100], error, extra=extra)
            return Response(400)
        if not isinstance(error, Refused):
            logger.error("a request to %r failed: %s", source[:100], error, extra=extra)
            return self.unavailable()
        self._refusals.tell(source, error)
        if error.status == 503:
            return self.unavailable()
        return Response(error.status)

    def _verify(self, request: Request, now: float) -> Genuine | Response:
        try:
            source = self._inbox.source(request.source)
            if request.method in PROBES and self._settings.answer_probes:
                return source.answer_probe(request) or Response(200, headers=(ALLOWED,))
            if request.method != "POST":
                return Response(405, headers=(ALLOWED,))
            length, limit = len(request.body), self._settings.max_body_bytes
            if length > limit:
                too_large = BodyTooLarge(f"the body has {length} bytes, over the limit of {limit}")
                return self.answer(too_large, source=source.name, request=request)
            answer = source.answer_unverified(request)
            if answer is not None:
                return answer
            return verify(source, request, now, limit)
        except NotVerified as refusal:
            return self._refused(source, request, now, refusal)
        except HookledgerError as error:
            # In its head, and so in what is kept, there must be no source that is made up.
            known = request if request.source in self._inbox.sources else None
            return self.answer(error, source=request.source, request=known)
        except Exception:
            return self._broken(request.source)

    def _read(self, genuine: Genuine) -> Readable | Response:
        try:
            return read(genuine, self._settings.max_body_bytes)
        except Exception as error:
            return self._unread(genuine.source, error)

    def _to_record(self, readable: Readable) -> Accepted | Response:
        source = readable.genuine.source
        try:
            accepted = to_record(readable)
        except Exception as error:
            return self._unread(source, error)
        if not accepted.events:
            # Verified, and carrying nothing: an empty batch.
            logger.info("a request to %s carried no events", source.name, extra={"source": source.name})
            return source.accepted
        return accepted

    def _unread(self, source: Source, error: Exception) -> Response:
        if isinstance(error, HookledgerError):
            return self.answer(error, source=source.name)
        return self._broken(source.name)

    def _refused(self, source: Source, request: Request, now: float, refusal: NotVerified) -> Response:
        error = self._diagnosis.explain(source, request, now, refusal)
        return replace(self.answer(error, source=source.name, request=request), status=source.refused_status)

    def _broken(self, source: str) -> Response:
        # A verifier that broke has not verified. Whether it can be mended by trying again, we cannot know.
        logger.exception("a request to %r could not be verified", source)
        return self.unavailable()
