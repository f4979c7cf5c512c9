"""`surgeval train …`: its options, and what it does."""
