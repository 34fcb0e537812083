"""Requests that nobody would think of, sent to the receiver: `python -m tests.fuzz --minutes 3`."""
