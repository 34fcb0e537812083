"""The deliveries that are drained: the same bodies, resources and versions for hookledger and for plain psycopg."""

from __future__ import annotations

import secrets
from typing import Any

from benchmarks.report import Failed

SOURCE = "benchmark"
EVENT_TYPE = "customer.updated"

LEAST_BODY = 200
BODY = f"""
    convert_to(
        left(
            format(
                '{{"id": "evt_%%s", "type": "{EVENT_TYPE}", "version": %%s, "data": {{"object": {{"id": "cus_%%s", ',
                number, number, number %% %(resources)s
            ) || '"more": "' || %(more)s::text,
            %(body)s - 4
        ) || '"}}}}}}',
        'UTF8'
    )
"""
"""SQL for the body of delivery `number`: a JSON document."""


def body_parameters(size: int, resources: int) -> dict[str, Any]:
    """What BODY needs.

    Args:
        size: bytes of each body.
        resources: that the deliveries are about, one after the other.
    """
    if size < LEAST_BODY:
        raise Failed(f"a body has {LEAST_BODY} bytes or more")
    # Random, for PostgreSQL compresses what is large.
    return {"body": size, "resources": resources, "more": secrets.token_hex(size // 2)}
