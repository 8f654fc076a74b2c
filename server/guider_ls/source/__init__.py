"""From the text of a program to its layer construction sites. libcst only; pure functions of the text."""
