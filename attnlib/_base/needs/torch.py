"""Imported where nothing works without torch."""

from attnlib._base.needs import needs

needs("torch", extra="torch")
