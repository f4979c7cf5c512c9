"""The parts of the protocol `triplets`; `surgeval.protocols.triplets` is the public face."""
