"""Datasets"""
