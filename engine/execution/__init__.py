"""From a proposal to a broker: sizing, limits, submission and the operator's controls."""
