"""Everything at once: receivers, workers and senders in the usual way, and every fault at random, until the time is up;
then the books are balanced.

    python -m tests.soak --minutes 10 [--seed 7]
"""
