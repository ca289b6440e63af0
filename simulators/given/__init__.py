"""What a user brings, recognised once: a function, a prior, an observation, a command.

Takes objects of any library, known by the module their classes come from; gives the protocol's.
Imports the protocol alone.
"""
