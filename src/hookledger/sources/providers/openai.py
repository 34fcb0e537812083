"""OpenAI. https://platform.openai.com/docs/guides/webhooks"""

from __future__ import annotations

from dataclasses import replace

from hookledger.sources.describe import SIGNED_ID, Family, Provider
from hookledger.sources.providers.standard_webhooks import STANDARD_SCHEME

# OpenAI's own library takes a signature without its version too.
SCHEME = replace(STANDARD_SCHEME, places=STANDARD_SCHEME.places[:1], prefixes=("v1,", ""))

openai = Provider(
    name="openai",
    title="OpenAI",
    documentation="https://platform.openai.com/docs/guides/webhooks",
    family=Family.STANDARD_WEBHOOKS,
    schemes=(SCHEME, replace(SCHEME, key_encoding="utf-8")),
    event_id=SIGNED_ID,
    event_type="type",
    resource="data.id",
    version="created_at",
    version_unit="seconds",
    deleted=(),
    survives="webhook-id is signed and the same at every attempt of 72 hours; webhook-timestamp is not.",
    cautions="""A secret that does not begin with whsec_ is used as the text that it is, as OpenAI's libraries do.
    `created_at` has whole seconds: on equal versions the later arrival wins.""",
    verified_by=("openai-python V51",),
)
