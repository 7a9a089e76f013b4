"""What a change of each setting does to what runs already."""
