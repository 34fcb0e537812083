"""Schemes of any description, as users write them with `hmac_source`."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hookledger import Source, hmac_source
from hookledger.sources.hmac_source import HASHES

SIGNED = ("{body}", "{timestamp}.{body}", "v0:{timestamp}:{body}", "{id}.{timestamp}.{body}", "{body}{timestamp}")
FIELDS = ("id", "data.id", "data.*.id", "header:X-Id", "header:X-Type", "a.b.c", "0.id")


@st.composite
def sources(draw: st.DrawFn) -> Source:
    """A source of any scheme."""
    signed = draw(st.sampled_from(SIGNED))
    options: dict[str, Any] = {}
    if "{timestamp}" in signed:
        options["timestamp_header"] = "X-Time"
        options["timestamp_unit"] = draw(st.sampled_from(["seconds", "milliseconds", "iso8601"]))
        options["tolerance"] = draw(st.sampled_from([1, 300, 10**9]))
    if "{id}" in signed:
        options["id_header"] = "X-Id"
    return hmac_source(
        "any",
        header=draw(st.sampled_from(["X-Sig", "Authorization", "x"])),
        secrets=draw(st.sampled_from(["k-test-1", ["old", "k-test-1"], "ключ"])),
        algorithm=draw(st.sampled_from(HASHES)),
        encoding=draw(st.sampled_from(["hex", "base64"])),
        prefix=draw(st.sampled_from(["", "v1=", "sha256=", ("a:", "b:")])),
        separator=draw(st.sampled_from([",", ";", " ", None])),
        signed=signed,
        format=draw(st.sampled_from(["json", "form"])),
        event_id=draw(st.none() | st.sampled_from(FIELDS)),
        event_type=draw(st.none() | st.sampled_from(FIELDS)),
        resource=draw(st.none() | st.sampled_from(FIELDS)),
        version=draw(st.none() | st.sampled_from(FIELDS)),
        **options,
    )
