"""The networks that can be opened, a module per family: CLIP, BLIP, SurgVLP, LLaVA, and what they share (torch)."""
