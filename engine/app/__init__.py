"""Use cases, one function each: everything that a front door can ask for."""
