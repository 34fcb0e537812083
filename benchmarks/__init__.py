"""What hookledger reaches, measured beside others in the same run: `python -m benchmarks --help`.

Run it from a clone with the extra `benchmarks` installed. This package and the modules of the contenders import
nothing at the top that another interpreter may lack: `drain.with_oban` runs under a Python of its own.
"""
