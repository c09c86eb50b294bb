"""Imported where nothing works without matplotlib."""

from attnlib._base.needs import needs

needs("matplotlib", extra="plot")
