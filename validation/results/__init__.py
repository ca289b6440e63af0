"""What a test returns, its pictures, what of it is kept on the disk, and how a file is read.

Takes statistics and p-values, gives :class:`~validation.ValidationResult`. Imports scores.
"""
