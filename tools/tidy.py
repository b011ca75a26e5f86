#!/usr/bin/env python3
"""Placeholder until the real checks land in this session."""
