"""May we trust that answer? Tests of any posterior with joint draws from prior and simulator."""
