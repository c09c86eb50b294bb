"""What `build.py` is made of: lessons, their rules and minutes, their two sides, running and comparing them."""
