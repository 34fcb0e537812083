"""Auth0 log streams. https://auth0.com/docs/customize/log-streams/custom-log-streams"""

from __future__ import annotations

from hookledger.sources.describe import Family, Provider, shared_token

auth0 = Provider(
    name="auth0",
    title="Auth0",
    documentation="https://auth0.com/docs/customize/log-streams/custom-log-streams",
    family=Family.TOKEN,
    # The whole value of the header, as it was typed in at Auth0.
    schemes=shared_token("Authorization"),
    items="",
    event_id="log_id",
    event_type="data.type",
    resource="data.user_id",
    version="data.date",
    deleted=(),
    survives="log_id names the entry of the log and is the same in every request that brings it.",
    cautions="""Nothing is signed: whoever sees one request can send others. Choose the content format JSON Array or
    JSON Object: a request in JSON Lines becomes a dead letter.""",
    unconfirmed=("When and how often Auth0 tries again.", "What the newer Event Streams send, which this is not for."),
)
