"""What is done with a whole dataset: check, convert, join, merge, draw, cut, fingerprint, measure quality."""
