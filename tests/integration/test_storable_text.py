"""What `storable` makes of anything, PostgreSQL takes as it is (D2)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, text

from hookledger.http import Headers
from hookledger.storable import key, label, message

anything = st.text(st.characters(exclude_categories=())) | st.text(st.sampled_from("a\x00\ud83d\ude00\\\"'%{},"))


def test_names_and_headers_of_any_kind_are_stored_and_come_back(engine: Engine) -> None:
    query = text("SELECT CAST(:names AS text[]), CAST(CAST(:headers AS jsonb) AS text)")
    with engine.connect() as connection:

        @settings(max_examples=300, deadline=None)
        @given(anything, anything)
        def stored(one: str, two: str) -> None:
            names = [key(one), label(two), message(one)]
            headers = Headers([(one, two), (two, one)]).to_json()
            row = connection.execute(query, {"names": names, "headers": headers}).one()
            assert row[0] == names
            assert Headers.from_json(row[1]) == Headers.from_json(headers)

        stored()
