"""What lessons quote of many seeds: a page for each script of the same name, which `make studies` writes.

``causes.csv`` lists the sentences that name a cause, each with its control and what came out.
"""
