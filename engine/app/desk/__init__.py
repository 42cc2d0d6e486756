"""Running the desk: market, account, runs, watch."""
