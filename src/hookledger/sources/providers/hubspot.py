"""HubSpot, signatures of version 3. https://developers.hubspot.com/docs/apps/legacy-apps/webhooks"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme, joined

hubspot = Provider(
    name="hubspot",
    title="HubSpot",
    documentation="https://developers.hubspot.com/docs/apps/legacy-apps/authentication/validating-requests",
    family=Family.URL_HMAC,
    schemes=Scheme(
        (Places("X-HubSpot-Signature-v3", "X-HubSpot-Request-Timestamp"),),
        encoding="base64",
        signed="{method}{url|hubspot}{body}{timestamp}",
        timestamp_unit="milliseconds",
    ),
    items="",
    event_id=joined(
        "portalId",
        "subscriptionId",
        "eventId",
        "objectId?",
        "occurredAt",
        "propertyName?",
        "fromObjectId?",
        "toObjectId?",
    ),
    event_type=("subscriptionType", "eventType"),
    resource=joined("portalId", "objectTypeId?", "objectId"),
    version="occurredAt",
    version_unit="milliseconds",
    deleted=("*.deletion", "*.privacyDeletion"),
    survives="""HubSpot says that eventId alone is not unique; together with the portal, the subscription, the object,
    the time and the property it is. attemptNumber counts the attempts and is left out.""",
    cautions="The older versions 1 and 2 of the signature, which carry no timestamp, are not taken.",
    verified_by=("hubspot-api-python V31",),
)
