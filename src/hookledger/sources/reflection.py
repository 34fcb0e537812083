"""Answers that give back what anybody may have sent: they fail closed."""

from __future__ import annotations

import logging
from collections.abc import Callable

from hookledger.errors import HookledgerError
from hookledger.http import Request, Response

logger = logging.getLogger(__name__)

LONGEST_REFLECTED = 4096
"""Bytes of an answer that was made of an unverified request; challenges of providers have at most some hundred."""
NO_SNIFF = ("x-content-type-options", "nosniff")
SAFE_TYPES = ("text/plain", "application/json")


def plain(text: str, status: int = 200) -> Response:
    """An answer in plain text that no browser takes for a page."""
    headers = (("content-type", "text/plain; charset=utf-8"), NO_SNIFF)
    return Response(status, text.encode("utf-8", "replace"), headers)


def reflected(source: str, handshake: Callable[[Request], Response | None], request: Request) -> Response | None:
    """The answer of a handshake to a request that was not verified, made safe; None if there is none.

    Args:
        source: its name, for the log.
        handshake: of the source.
        request: by anybody.
    """
    try:
        answer = handshake(request)
    except HookledgerError as error:
        logger.warning("a handshake of %s was not answered: %s", source, error, extra={"source": source})
        return None
    except Exception:
        # Whatever a sender sent, the request then has to verify like any other.
        logger.exception("a handshake of %s failed", source, extra={"source": source})
        return None
    if answer is None:
        return None
    headers = [(name.lower(), value) for name, value in answer.headers if name.lower() != NO_SNIFF[0]]
    kind = next((value for name, value in headers if name == "content-type"), "text/plain")
    unsafe = answer.body and kind.partition(";")[0].strip().lower() not in SAFE_TYPES
    broken = any(character in value for _, value in headers for character in "\r\n\0")
    if unsafe or broken or len(answer.body) > LONGEST_REFLECTED or 300 <= answer.status < 400 or answer.status == 410:
        logger.warning(
            "a handshake of %s was refused: its answer is too long or not plain text or JSON",
            source,
            extra={"source": source},
        )
        return Response(400)
    return Response(answer.status, answer.body, (*headers, NO_SNIFF))
