"""Imported where nothing works without torch."""

from attnlib._needs import needs

needs("torch", extra="torch")
