"""Report"""
