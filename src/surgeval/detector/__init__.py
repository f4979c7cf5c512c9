"""TDnet and RT-DETR: surgical triplet detectors in plain torch."""
