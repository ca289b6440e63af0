"""The command line ``abi``: the one place where the three packages meet."""
