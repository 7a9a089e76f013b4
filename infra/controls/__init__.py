"""What templates are held to: rules of our own, the checkers of others, and the findings that are
accepted."""
