"""A model of claim, hold and settle that is small enough to be checked whole (D9, D10).

Every step is one statement of the worker, or something that happens to it. What a transaction has written is seen by
others at its commit only, and its locks end with it; so what happens between two statements of one transaction is left
out where nobody could see a difference.

| step | in the code |
|---|---|
| look, take | `statements.claim`: its snapshot, then its locks (SKIP LOCKED); what `statements.take` writes |
| commit | the end of a transaction; that of a claim does not wait for the disk |
| hold | `statements.hold`, `hold_alike` (SKIP LOCKED) |
| wait, woken, timeout | `statements.hold_waiting` for the rows missed; its lock_timeout (`worker/hold.py`) |
| lock | `statements.lock_states`: the watermark of the resource |
| run | `look_up` where it is due, the handlers, and what `Batch._write` writes: `settle`, `postpone`, `bury` ... |
| conflict | a deadlock, or a batch that cannot commit: rolled back, its deliveries go alone (`Cycle._together`) |
| charge | `statements.claim_one`, before a delivery that crashed runs alone (`Cycle._after_crash`) |
| bury | `statements.bury` of what crashed too often (`Cycle._bury_crashed`) |
| give back | `statements.give_back` (`Cycle._make_due`, and `Cycle._refund` after an outage) |
| stop | the worker was told to stop before it ran what had crashed |
| unheard | a commit whose answer is lost with the connection |
| crash, released | the process ends; PostgreSQL notices it and rolls back |
| lost | the connection is cut under a worker that lives on |
| restart | PostgreSQL is killed and recovers: claims that the disk has not are undone |
| due | a due time comes; a *stall* if it is that of a claim whose worker lives and has not held the row yet |
| revive | the sender delivers a dead letter again (`statements.record_again`) |

Time has no length: a due time may come at any moment. What a worker may die of, and how often, is counted out by the
setting, since with no bound on it everything would become a dead letter.

`replay.py` runs walks through the model against the statements themselves, on connections of PostgreSQL.
"""
