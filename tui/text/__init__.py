"""Documents as text, for the shell and for screens."""
