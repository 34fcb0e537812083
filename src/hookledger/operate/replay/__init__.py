"""Replay: make settled or dead deliveries pending again. The worker's cycle, the effects and the watermark decide the
rest, so a replay cannot double an effect or move a resource back (D11).

`make_plan` says what would happen, `begin` records that it is wanted, and `Run` does it, in batches.
"""

from hookledger.operate.replay.options import Options
from hookledger.operate.replay.plan import Plan, make_plan
from hookledger.operate.replay.records import Replay, ReplayState, begin, find, newest, resume, stop
from hookledger.operate.replay.run import Run
from hookledger.operate.replay.selection import Kind, Matching, Selection

__all__ = [
    "Kind",
    "Matching",
    "Options",
    "Plan",
    "Replay",
    "ReplayState",
    "Run",
    "Selection",
    "begin",
    "find",
    "make_plan",
    "newest",
    "resume",
    "stop",
]
