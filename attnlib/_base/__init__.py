"""What every room stands on: arrays of NumPy and torch, checks of arguments, seeds, and what is missing or renamed."""
