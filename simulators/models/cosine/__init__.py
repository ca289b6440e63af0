"""The cosine model: simulator, compiled loop, exact posterior."""
