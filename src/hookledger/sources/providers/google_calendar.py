"""Google Calendar, and the other APIs of Google that notify of changes through channels.

https://developers.google.com/workspace/calendar/api/guides/push
"""

from __future__ import annotations

from hookledger.sources.describe import Family, Provider, joined, shared_token

google_calendar = Provider(
    name="google-calendar",
    title="Google Calendar",
    documentation="https://developers.google.com/workspace/calendar/api/guides/push",
    family=Family.TOKEN,
    schemes=shared_token("X-Goog-Channel-Token"),
    format="bytes",
    event_id=joined("header:X-Goog-Channel-ID", "header:X-Goog-Message-Number"),
    event_type="header:X-Goog-Resource-State",
    resource=joined("header:X-Goog-Channel-ID", "header:X-Goog-Resource-ID"),
    version="header:X-Goog-Message-Number",
    deleted=("not_exists",),
    survives="X-Goog-Message-Number grows with every message of a channel, and tells them apart. The body is empty.",
    cautions="""Set a token when you open the channel; it is all that tells who sends, and nothing else is signed:
    whoever sees one request can make others. A message says only that something has changed: ask the API what. The
    first message of a channel has the type `sync`.""",
    unconfirmed=("That a message that is sent again has the same number.",),
)
