"""What a rival may be set to, as JSON: `python -m benchmarks.drain.variants NAME`, with the rival's interpreter."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import platform
import sys

from benchmarks.drain.contender import MODULES


def main() -> None:
    """Print the variants of the named rival, on how many jobs to try them, and its version."""
    name = sys.argv[1]
    module = importlib.import_module(MODULES[name])
    found = {
        "variants": list(module.VARIANTS),
        "calibration": module.CALIBRATION,
        "version": importlib.metadata.version(name),
        "python": platform.python_version(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
