"""What the project says: settings, targets (program, model, test set) and the interpreter."""
