"""GUIDER's language server and command line: maps a program's lines to its model's layers and ranks them."""

__version__ = "0.1.0"
