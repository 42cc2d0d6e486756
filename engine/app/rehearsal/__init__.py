"""The rehearsal of a desk's preset: what it has to pass before it trades an account, and the certificate of it."""
