"""What a handler's settings and its return value say of a delivery: resource, version, numbers."""

from __future__ import annotations

from typing import Any

from hookledger.errors import HandlerError, UncomparableVersion
from hookledger.handlers import Handler
from hookledger.ledger.rows import AddedNumber
from hookledger.storable import identifier
from hookledger.version import Version, read_version
from hookledger.worker.outcome import Claimed, Snapshot
from hookledger.worker.state import added_numbers


def read_snapshot(claimed: Claimed, handler: Handler) -> Snapshot:
    """The delivery as a snapshot handler orders it.

    Raises:
        HandlerError: if it names no resource.
        UncomparableVersion: if it carries no version, or none that can be compared.
        Whatever the handler's own functions raise.
    """
    delivery = claimed.delivery
    resource, version = read_rank(claimed, handler)
    deleted = delivery.deleted if handler.deleted is None else bool(handler.deleted(delivery))
    return Snapshot.of(claimed, handler, resource, version, deleted=deleted)


def read_rank(claimed: Claimed, handler: Handler) -> tuple[str, Version]:
    """What the delivery is about for a snapshot handler, and what orders it.

    Raises:
        HandlerError, UncomparableVersion: as `read_snapshot`.
    """
    delivery = claimed.delivery
    resource = _resource(claimed, handler)
    if resource is None:
        raise HandlerError(
            f"the delivery ({delivery.event_type}) names no resource: give the handler resource=..., or narrow its "
            "event types"
        )
    version = delivery.version if handler.version is None else read_version(handler.version(delivery))
    if version is None:
        raise UncomparableVersion(
            f"the delivery ({delivery.event_type}) carries no version: give the handler version=..., or narrow its "
            "event types"
        )
    return resource, version


def numbers_to_add(claimed: Claimed, handler: Handler, returned: Any) -> list[AddedNumber]:
    """What an accumulate handler returned, as rows for the ledger.

    Raises:
        HandlerError: if it is no mapping of numbers, or there is no resource to add them to.
        Whatever the handler's `resource=` raises.
    """
    numbers = added_numbers(returned)
    if not numbers:
        return []
    resource = _resource(claimed, handler)
    if resource is None:
        raise HandlerError(
            "the handler returned numbers, but the delivery names no resource to add them to: give the handler "
            "resource=..."
        )
    delivery = claimed.delivery
    return [
        AddedNumber(handler.name, delivery.source, resource, label, value, delivery.id)
        for label, value in numbers.items()
    ]


def _resource(claimed: Claimed, handler: Handler) -> str | None:
    if handler.resource is None:
        return claimed.delivery.resource
    return identifier(handler.resource(claimed.delivery))
