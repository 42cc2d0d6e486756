"""Settings: configuration, keys, places, what presets set for owners, memory and rehearsals, code of the user's."""
