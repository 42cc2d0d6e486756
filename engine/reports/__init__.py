"""Results of runs in numbers: metrics by named convention, the papers' tables, comparison with them."""
