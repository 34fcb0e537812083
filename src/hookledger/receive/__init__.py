"""The way in: verify a request, record it, and answer only when that is committed."""

from hookledger.receive.intake import Intake
from hookledger.receive.quarantine import Quarantine
from hookledger.receive.settings import IntakeSettings

__all__ = ["Intake", "IntakeSettings", "Quarantine"]
