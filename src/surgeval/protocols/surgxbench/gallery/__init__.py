"""What there is to look at in a run: pictures of predictions and their maps, drawn and chosen."""
