"""Each protocol reads like its paper's method section: `surgxbench`, `triplets`, `focus`, `intent`, `robustness`."""
