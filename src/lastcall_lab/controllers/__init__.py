"""The controllers of the lab's control plane: each is a pure decision over what is known, and one runner carries them out."""
