"""What can be done in a rehearsal: ``table.DEEDS`` tells what each verb does."""
