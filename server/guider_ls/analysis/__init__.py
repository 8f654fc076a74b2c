"""The client of the engine process, and what decides when it runs."""
