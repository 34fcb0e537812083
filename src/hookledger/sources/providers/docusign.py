"""DocuSign Connect. https://developers.docusign.com/platform/webhooks/connect/"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme, joined

docusign = Provider(
    name="docusign",
    title="DocuSign",
    documentation="https://developers.docusign.com/platform/webhooks/connect/validate/",
    family=Family.BODY_HMAC,
    # One numbered header for each key that is active.
    schemes=Scheme((Places("X-DocuSign-Signature-*"),), encoding="base64", separator=None),
    event_id=joined("data.envelopeId", "event", "generatedDateTime", "data.recipientId?"),
    event_type="event",
    resource="data.envelopeId",
    version="generatedDateTime",
    deleted=("envelope-deleted", "envelope-purge"),
    survives="""No id of the event is sent; the envelope, the event and the time at which it was made tell events apart.
    retryCount counts the attempts and is left out.""",
    cautions="""No timestamp is signed. Choose JSON as the format: an event in XML becomes a dead letter. Without an
    HMAC key in the Connect settings nothing is signed, and refused.""",
    unconfirmed=("That generatedDateTime is the same when an event is sent again.", "For how long it is sent again."),
)
