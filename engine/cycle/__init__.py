"""One round of decisions over a batch of symbols: the steps of the analysis, and the decision of each owner."""
