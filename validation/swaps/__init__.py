"""Is the truth one of q's own draws? Each is taken for the truth in turn: one exact p-value.

Takes, at each x, the true theta among draws of q; gives the p-value over a panel of tests, what is
wrong in words with its size, and how far off q may be at an x_o. Imports the frames of scores.
"""
