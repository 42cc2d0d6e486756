"""Commands in a terminal: progress, questions, the web server."""
