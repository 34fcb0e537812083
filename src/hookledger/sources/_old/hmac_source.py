"""The generic source: any sender that signs with an HMAC and a shared secret."""

from __future__ import annotations

from collections.abc import Sequence

from hookledger.errors import SetupError
from hookledger.sources._old.fields import Deleted, EventFields, Field, Format, deletion
from hookledger.sources._old.reading import VersionUnit
from hookledger.sources._old.scheme import (
    ALGORITHMS,
    DEFAULT_TOLERANCE,
    Encoding,
    HeaderNames,
    Scheme,
    TimestampUnit,
    one_of,
    read_template,
)
from hookledger.sources._old.scheme_verifier import SchemeVerifier
from hookledger.sources._old.secrets import KeyEncoding, Secrets, read_secrets
from hookledger.sources.source import Source


def hmac_source(
    name: str,
    *,
    header: str,
    secrets: Secrets,
    algorithm: str = "sha256",
    encoding: Encoding = "hex",
    secret_encoding: KeyEncoding = "utf-8",  # noqa: S107
    prefix: str | Sequence[str] = "",
    separator: str | None = ",",
    signed: str = "{body}",
    timestamp_header: str | None = None,
    timestamp_item: str | None = None,
    timestamp_unit: TimestampUnit = "seconds",
    tolerance: float = DEFAULT_TOLERANCE,
    id_header: str | None = None,
    format: Format = "json",
    event_id: Field | None = "id",
    event_type: Field | None = "type",
    resource: Field | None = None,
    version: Field | None = None,
    version_unit: VersionUnit | None = None,
    deleted: Deleted = ("*.deleted",),
) -> Source:
    """A sender that is not built in, described by options.

    A shop that sends `X-Sig: v1=<hex>,v1=<hex>`: `hmac_source("shop", header="X-Sig", prefix="v1=", secrets=...)`.
    Slack: `hmac_source("slack", header="X-Slack-Signature", prefix="v0=", signed="v0:{timestamp}:{body}",
    timestamp_header="X-Slack-Request-Timestamp", event_id="event_id", event_type="event.type", secrets=...)`.

    Args:
        name: of the source.
        header: the name of the header that holds the signature.
        secrets: one, or several while a secret is changed.
        algorithm: the hash of the HMAC: sha256, sha1, sha384 or sha512.
        encoding: how the signature is written: hex or base64.
        secret_encoding: how the key is written in the secret: utf-8 (the text is the key), base64, hex or whsec.
        prefix: what stands before the signature in the header, or several such; items without it are skipped.
        separator: what stands between several items of the header; None if it always holds just one.
        signed: the bytes that are signed, put together from {body}, {timestamp}, {id} and fixed text.
        timestamp_header: the header with the timestamp that is signed.
        timestamp_item: or the beginning of the item of the signature header that holds it, e.g. "t=".
        timestamp_unit: "seconds" or "milliseconds" since 1970, or "iso8601".
        tolerance: how far the signed timestamp may be off our clock, either way, in seconds.
        id_header: the header with the id that is signed.
        format: what the body is: json, form or bytes.
        event_id, event_type, resource, version: where they are found: a dotted path into the body
            ("data.items.0.id"; in a form the name of a field, and then a path into JSON in it), "header:Name",
            or a function of the request; None where the sender gives none. Without an event id, an event is
            known by the digest of its bytes.
        version_unit: "seconds" or "milliseconds" if the version is a number since 1970.
        deleted: patterns of the event types that say that a resource is gone, or a function of the delivery.

    Raises:
        SecretError: for a secret that is empty, blank or wrongly spelled.
        SetupError: for another option that could not work.
    """
    keys = read_secrets(name, secrets, secret_encoding)
    try:
        one_of("algorithm", algorithm, ALGORITHMS)
        scheme = Scheme(
            headers=(HeaderNames(header, timestamp_header, id_header),),
            algorithm=algorithm,
            encoding=encoding,
            prefixes=(prefix,) if isinstance(prefix, str) else tuple(prefix or ()),
            separator=separator,
            template=read_template(signed),
            timestamp_item=timestamp_item,
            timestamp_unit=timestamp_unit,
            tolerance_past=tolerance,
            tolerance_future=tolerance,
            key_encoding=secret_encoding,
        )
        fields = EventFields(
            format,
            event_id=event_id,
            event_type=event_type,
            resource=resource,
            version=version,
            version_unit=version_unit,
        )
        gone = deletion(deleted)
    except SetupError as error:
        raise SetupError(f"the source {name!r}: {error}") from None
    verifier = SchemeVerifier(scheme, keys)
    return Source(
        name=name,
        provider="hmac",
        verifier=verifier,
        read=fields.read,
        document=fields.document,
        deleted=gone,
        sign=verifier.sign,
        has_resource=resource is not None,
        has_version=version is not None,
    )
