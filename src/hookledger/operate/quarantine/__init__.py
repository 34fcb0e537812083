"""Refused requests that were kept: looked at, let in once the secret is mended, or discarded."""

from hookledger.operate.quarantine.find import Group, Kept, Wanted, groups, kept, one
from hookledger.operate.quarantine.release import Released, Verdict, discard, release

__all__ = ["Group", "Kept", "Released", "Verdict", "Wanted", "discard", "groups", "kept", "one", "release"]
