"""What the tests share: classifiers, scores, ball ranks, frames, and ranks that are uniform.

Takes pairs and draws, gives numbers whose null is known. Imports posteriors.
"""
