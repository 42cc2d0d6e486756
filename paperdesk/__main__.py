"""The entry point of the command `paperdesk`: the check of the installation, then the command line."""

from tui.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
