"""Macro series from FRED, with their vintages."""
