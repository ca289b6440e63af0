"""What commands do beyond words: objects and arrays from the command line, runs begun and taken up.

Takes the words of the commands, gives what the rooms below take. All that needs torch is here, and
is imported as a command runs: help, version and completion do without.
"""
