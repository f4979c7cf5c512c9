"""What is done with a whole dataset: check, convert, merge, draw, cut, fingerprint, measure quality."""
