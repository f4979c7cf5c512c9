"""Bootstrap and agreement"""
