"""One conformance suite, run over every adapter on real servers (D14)."""
