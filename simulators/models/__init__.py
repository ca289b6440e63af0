"""One model a file, or a folder with simulator, compiled loops and exact posterior side by side.

Takes constants, gives a :class:`~simulators.base.Task`. Imports the protocol, exact and streams.
"""
