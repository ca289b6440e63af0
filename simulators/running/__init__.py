"""Where and how simulations run: batches, engines, worker processes, clusters, progress.

Takes theta and a simulator, gives results batch by batch. Imports the protocol; knows no store.
"""
