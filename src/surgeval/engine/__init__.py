"""Engine"""
