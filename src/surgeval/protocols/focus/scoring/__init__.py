"""From answers to numbers: the challenge's rules, judges, summaries with intervals, the blind baseline, admission."""
