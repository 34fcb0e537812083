"""For how long senders send again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hookledger.sources import retry_times
from hookledger.sources.catalogue import providers
from hookledger.sources.retry_times import DEFAULT, retry_time, retry_time_of_name

HOUR = timedelta(hours=1)


def test_every_figure_is_of_a_provider_that_there_is() -> None:
    known = {provider.name for provider in providers()}

    assert set(retry_times._HOURS) <= known


def test_a_provider_without_a_figure_has_the_default() -> None:
    assert (retry_time("stripe"), retry_time("shopify"), retry_time("acme")) == (72 * HOUR, 4 * HOUR, DEFAULT)


@pytest.mark.parametrize(
    ("name", "time"),
    [
        ("stripe", 72 * HOUR),
        ("stripe-eu", 72 * HOUR),
        ("Shopify_2", 4 * HOUR),
        ("standard-webhooks.billing", 28 * HOUR),
        ("mollie-classic", 26 * HOUR),
        ("shop", DEFAULT),
        ("billing-stripe", DEFAULT),
    ],
)
def test_the_name_of_a_source_tells_its_provider_where_it_begins_with_it(name: str, time: timedelta) -> None:
    assert retry_time_of_name(name) == time
