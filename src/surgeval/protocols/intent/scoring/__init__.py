"""From answers to numbers: right and wrong per item, the paper's weights, intervals, interventions."""
