"""Words into a model and out of it: tokenizers and chat templates of strangers' folders, bounded."""
