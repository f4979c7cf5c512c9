"""From answers to numbers: the challenge's rules, judges, summaries with intervals, the floor, who is admitted."""
