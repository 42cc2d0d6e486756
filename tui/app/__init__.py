"""The application: screens, palette, links, tour."""
