"""The parts the methods are made of."""
