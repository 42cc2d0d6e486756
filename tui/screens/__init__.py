"""The screens of the app, and the pages over them."""
