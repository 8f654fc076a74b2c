"""From layer sites and a model's layers to pairs of them, each with its reason. Pure."""
