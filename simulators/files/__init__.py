"""Files that are on the disk whole or not at all, records found again, versions.

Takes bytes and plain values, gives paths. Imports nothing of the package.
"""
