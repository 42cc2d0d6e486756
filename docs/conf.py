"""The site of these pages: `make docs`. A link to a page, a heading or a file that is not there fails the build."""

from importlib.metadata import version as installed

project = "Paperdesk"
author = "The Paperdesk authors"
project_copyright = author
version = release = installed("paperdesk")

extensions = ["myst_parser"]
myst_heading_anchors = 4
nitpicky = True
exclude_patterns = ["systemd"]

html_theme = "alabaster"
html_theme_options = {"description": "AI analysts trading paper money", "page_width": "72rem", "sidebar_width": "16rem"}
html_show_sphinx = False
html_copy_source = False
