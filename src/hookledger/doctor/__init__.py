"""What is wrong with a ledger, its database and its inbox, each with what to do about it: `hookledger doctor`."""

from hookledger.doctor.examine import examine, examine_asynchronously
from hookledger.doctor.finding import Finding, Limits, Severity, is_healthy
from hookledger.doctor.inbox import refused_secret

__all__ = [
    "Finding",
    "Limits",
    "Severity",
    "examine",
    "examine_asynchronously",
    "is_healthy",
    "refused_secret",
]
