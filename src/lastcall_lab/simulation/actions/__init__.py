"""The actions of a rehearsal; ``table`` maps each verb to its action."""
