"""The spiral: a conditional diffusion model, and the same one stopped a few steps too early."""
