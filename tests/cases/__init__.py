"""The faults that people reported in other receivers and queues, with what happens here and the tests that show it."""
