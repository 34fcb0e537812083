"""The tests, as a package, so that they can share modules and be run as programs."""
