"""What is known of a node and of each of its boots: facts, what they prove, and the marks that say what has been begun."""
