"""Models and test sets from files, or from a function of the project."""
