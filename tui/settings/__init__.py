"""Settings of the app and of a command: keys, themes, state, configuration."""
