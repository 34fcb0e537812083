"""Reading a body before it is verified, because its signature is in it: within bounds, and nothing but a refusal comes
of what cannot be read."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from hookledger.errors import Cause, NotVerified, UnreadableBody
from hookledger.sources.reading import read_form, read_json

LARGEST_UNVERIFIED = 4 * 1024 * 1024
"""Bytes of a body that is parsed before it is verified."""


def unverified_json(body: bytes) -> Any:
    """The document of a JSON body.

    Raises:
        NotVerified: if the body is too large, or no JSON.
    """
    _check_size(body)
    try:
        return read_json(body)
    except UnreadableBody as error:
        raise malformed(f"the signature is in the body, but {error}") from None


def unverified_object(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is.

    Raises:
        NotVerified: if it is none.
    """
    document = unverified_json(body)
    if not isinstance(document, dict):
        raise malformed("the signature is in the body, but the body is no JSON object")
    return document


def unverified_form(body: bytes) -> dict[str, list[str]]:
    """The fields of a body that is a form.

    Raises:
        NotVerified: if the body is too large, or has too many fields.
    """
    _check_size(body)
    try:
        return read_form(body)
    except UnreadableBody as error:
        raise malformed(f"the signature is in the body, but {error}") from None


def decoded(text: object, what: str) -> bytes:
    """The bytes behind base64.

    Args:
        text: as it was sent.
        what: it is, for the message.

    Raises:
        NotVerified: if it is none.
    """
    try:
        return base64.b64decode(text if isinstance(text, str) else "*", validate=True)
    except (binascii.Error, ValueError):
        raise malformed(f"{what} is no base64") from None


def malformed(says: str) -> NotVerified:
    """The refusal of a request whose signature is not where it should be, or not written as it should be."""
    return NotVerified(says, Cause.SIGNATURE_MALFORMED)


def _check_size(body: bytes) -> None:
    if len(body) > LARGEST_UNVERIFIED:
        raise malformed(
            f"the signature is in the body, and the body has {len(body)} bytes, over the {LARGEST_UNVERIFIED} that are "
            "parsed before they are verified"
        )
