"""The answer's flows and a likelihood learned beside them, as one distribution.

Takes fitted flows and the pairs that they were fitted to, gives their log-linear pool, or the flows
alone where theta held out gain nothing. Imports the rooms below it and `abi.encoders`.
"""
