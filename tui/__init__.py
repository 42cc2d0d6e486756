"""Paperdesk's two user interfaces: the command line and the terminal app."""

import os

# Textual reads it as it is imported. It paints when this much time has passed, whatever changed when: at its usual 60
# a second a key waits up to 17 ms for that, and twice as long after another change.
os.environ.setdefault("TEXTUAL_FPS", "240")
