"""A bench: a paper's published tables with our figures beside the printed ones, of rules and of agents."""
