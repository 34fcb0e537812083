"""Arrays that we write ourselves are what PostgreSQL reads."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from hookledger.ledger.arrays import array

texts = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])) | st.text(
    st.sampled_from("\"\\{},' \n\tNULLü%"), max_size=4
)


def test_arrays_come_back_as_they_were(engine: Engine) -> None:
    with engine.connect() as connection:

        def read(values: list[Any], kind: str) -> list[Any]:
            (row,) = connection.exec_driver_sql(f"SELECT %(values)s::{kind}[]", {"values": array(values)}).all()
            return list(row[0])

        @settings(max_examples=300, deadline=None)
        @given(st.lists(texts, min_size=1), st.lists(st.none() | texts, min_size=1))
        @example(["", ""], ["", None])
        @example(['","'], ['"'])
        @example(["NULL"], ["null", None])
        def come_back(present: list[str], optional: list[str | None]) -> None:
            assert read(present, "text") == present
            assert read(optional, "text") == optional

        @settings(max_examples=50, deadline=None)
        @given(
            st.lists(st.integers(-(2**63), 2**63 - 1) | st.none(), min_size=1),
            st.lists(st.booleans() | st.none(), min_size=1),
            st.lists(st.floats(allow_nan=False), min_size=1),
        )
        def numbers_come_back(integers: list[int | None], truths: list[bool | None], floats: list[float]) -> None:
            assert read(integers, "bigint") == integers
            assert read(truths, "boolean") == truths
            assert read(floats, "float8") == floats

        @settings(max_examples=50, deadline=None)
        @given(st.lists(st.binary(), min_size=1))
        def bytes_come_back(values: list[bytes]) -> None:
            (row,) = connection.exec_driver_sql("SELECT %(values)b::bytea[]", {"values": array(values)}).all()
            assert [bytes(value) for value in row[0]] == values

        come_back()
        numbers_come_back()
        bytes_come_back()
