"""Imported where nothing works without matplotlib."""

from attnlib._needs import needs

needs("matplotlib", extra="plot")
