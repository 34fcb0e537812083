"""The way in: verify a request, record it, and answer only when that is committed."""

from hookledger.receive.intake import Intake, IntakeSettings

__all__ = ["Intake", "IntakeSettings"]
