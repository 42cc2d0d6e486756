"""The two user interfaces: the command line and the terminal app."""
