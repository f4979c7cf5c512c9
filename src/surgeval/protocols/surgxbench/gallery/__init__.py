"""What there is to look at in a run: pictures of predictions and their maps, and the files that keep them."""
