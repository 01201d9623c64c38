"""How many workers each role needs, decided from what the routers measured.

Pure: `decide` takes readings, counts and the time, and returns counts with the reason and the figures behind it.
"""
