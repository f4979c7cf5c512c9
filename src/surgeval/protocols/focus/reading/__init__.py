"""Questions and answers as files, datasets and logs have them: checked records, and where they come from."""
