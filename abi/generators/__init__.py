"""Generative models: each fits draws of theta and becomes the next proposal, or the answer."""
