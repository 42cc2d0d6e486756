"""The widgets of the screens, with the rows and texts that they show."""
