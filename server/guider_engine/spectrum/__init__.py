"""The hit spectrum of every neuron in one streaming pass over the tests."""
