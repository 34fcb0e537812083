"""The protocol in every state that it can come to, and with parts of it left out (D9, D10)."""

from __future__ import annotations

import pytest

from tests.model.explorer import explore
from tests.model.settings import MUTATIONS, SETTINGS
from tests.model.state import Setting


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_every_property_holds_in_every_state(setting: Setting) -> None:
    found = explore(setting)
    assert not found.flaw, found.trace
    assert found.states > 1000


@pytest.mark.parametrize("setting", MUTATIONS, ids=lambda setting: setting.name)
def test_what_is_left_out_is_missed(setting: Setting) -> None:
    assert explore(setting).flaw
