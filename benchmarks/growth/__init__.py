"""How the cost grows: with the ledger, with a transaction held open, with slots, batches, bodies and bursts."""
