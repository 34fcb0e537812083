"""Faults in the machine while deliveries flow: nothing lost, nothing doubled, nothing moved back, and nobody helps."""
