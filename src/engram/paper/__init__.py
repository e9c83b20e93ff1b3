"""Choi, Lee, Choi 2019: the autoencoder, its losses, consolidation and outliers, training, and the method itself."""
