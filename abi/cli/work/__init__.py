"""What commands do beyond words: which run, which posterior and which pairs the words stand for.

Takes the words of the commands, gives what the rooms below take. It needs torch, and is imported
as a command runs: help, version and completion do without.
"""
