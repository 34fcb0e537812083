"""All that a provider is described with, in one import."""

from __future__ import annotations

from hookledger.sources.fields import EACH_REQUEST, POSITION, SIGNED_ID, OfItem, joined
from hookledger.sources.places import Places
from hookledger.sources.provider import Family, Provider, Reads
from hookledger.sources.sample import Expected, Sample
from hookledger.sources.scheme import Scheme, basic, bearer, shared_token
from hookledger.sources.secrets import SecretRules
from hookledger.sources.settings import Option, Settings

__all__ = [
    "EACH_REQUEST",
    "POSITION",
    "SIGNED_ID",
    "Expected",
    "Family",
    "OfItem",
    "Option",
    "Places",
    "Provider",
    "Reads",
    "Sample",
    "Scheme",
    "SecretRules",
    "Settings",
    "basic",
    "bearer",
    "joined",
    "shared_token",
]
