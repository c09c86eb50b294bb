"""What `build.py` is made of: lessons, their rules, their two sides, running them, their pictures."""
