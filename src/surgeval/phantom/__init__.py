"""Phantom"""
