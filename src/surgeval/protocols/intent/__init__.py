"""Protocol `intent`: does a model understand what the clinician is doing and why, and can it be fooled?"""
