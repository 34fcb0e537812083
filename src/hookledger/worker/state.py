"""What a handler returned, made ready for `resource_state.state`.

jsonb holds neither NUL, half a surrogate pair, NaN nor infinity, and adding in floating point would make a sum
depend on the order of its parts. So text is made storable, numbers are added as decimals, and what cannot be
held is the handler's failure, told before it can spoil the batch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from hookledger import storable
from hookledger.errors import HandlerError

DEEPEST = 200
MOST_DIGITS = 1000


def _cleaned(value: Any, depth: int = 0) -> Any:
    if depth > DEEPEST:
        raise HandlerError(f"the handler returned a mapping nested deeper than {DEEPEST} levels")
    if isinstance(value, str):
        return storable.text(value)
    if isinstance(value, Mapping):
        return {storable.text(str(name)): _cleaned(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(item, depth + 1) for item in value]
    return value


def snapshot_state(returned: Any) -> str | None:
    """The JSON text of the mapping that a snapshot handler returned; None if it returned None.

    Raises:
        HandlerError: if it returned something else, or a mapping that JSON cannot hold.
    """
    if returned is None:
        return None
    if not isinstance(returned, Mapping):
        raise HandlerError(
            f"a snapshot handler returns a mapping, which becomes the state, or None; not {type(returned).__name__}"
        )
    try:
        return json.dumps(_cleaned(returned), allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise HandlerError(f"the mapping that the handler returned cannot be stored as JSON: {error}") from error


def added_numbers(returned: Any) -> dict[str, Decimal]:
    """The numbers that an accumulate handler returned, by name; empty if it returned None.

    Raises:
        HandlerError: if it returned anything but a mapping of names to finite numbers.
    """
    if returned is None:
        return {}
    if not isinstance(returned, Mapping):
        raise HandlerError(
            "an accumulate handler returns a mapping of names to numbers, which are added to the state, or None; "
            f"not {type(returned).__name__}"
        )
    numbers: dict[str, Decimal] = {}
    for name, value in returned.items():
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise HandlerError(f"the handler returned {type(value).__name__} for {str(name)[:60]!r}, not a number")
        # float's own repr: a subclass may write something else.
        number = Decimal(float.__repr__(value)) if isinstance(value, float) else Decimal(value)
        if not _can_be_added(number):
            raise HandlerError(
                f"the handler returned a number for {str(name)[:60]!r} that cannot be added: it is not finite, or has "
                f"more than {MOST_DIGITS} digits before or after the point"
            )
        numbers[storable.text(str(name))] = number
    return numbers


def _can_be_added(number: Decimal) -> bool:
    exponent = number.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -MOST_DIGITS and number.adjusted() < MOST_DIGITS
