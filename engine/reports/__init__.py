"""Reports rendered from the documents of results and of days, and comparisons with the papers' tables."""
