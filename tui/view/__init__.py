"""Values that screens show."""
