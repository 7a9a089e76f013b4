"""Strange input for every reader of what others wrote; `make fuzz` runs it, guided by coverage."""
