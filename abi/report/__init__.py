"""What a person reads of a fit: summaries, pictures, and the page that also shows its validations.

Takes a run folder or a posterior, gives text, PNG and HTML. Imports ``validation`` and the rooms of
a fit; the command line and the studies import it.
"""
