"""Paperdesk as a library: backtests, audits and desks from Python, by the use cases of the command line."""

from paperdesk.installation import refuse, shadowed

if _fault := shadowed():
    refuse(_fault)
