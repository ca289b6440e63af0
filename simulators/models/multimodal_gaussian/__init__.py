"""Four bivariate points, five parameters, four modes: simulator and compiled loop."""
