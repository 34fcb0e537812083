"""Several workers, real processes, and what happens when they are killed."""
