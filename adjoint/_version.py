"""The version number; defined only here."""

__version__ = "0.1.0"
