"""What the person on call does with a ledger: find, understand, pause. The command line is made of this typed API."""
