"""What the program asks of the world and does to it, answered and done once."""
