"""The way from the app to the desk: following, requests, events."""
