"""Conventions by name: execution rules, starting cash and metric formulas, the house's own and each paper's."""
