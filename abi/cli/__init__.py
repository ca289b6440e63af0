"""The command line ``abi``: one short file a command, which parses, calls and prints.

Takes words, gives text, files and an exit status. Imports every room; none imports it.
"""
